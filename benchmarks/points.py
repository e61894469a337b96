"""Command of `benchmarks/comparison/points`."""

from benchmarks.comparison.points import main

if __name__ == "__main__":
    raise SystemExit(main())
