"""Command of `benchmarks/comparison/scaling`."""

from benchmarks.comparison.scaling import main

if __name__ == "__main__":
    raise SystemExit(main())
