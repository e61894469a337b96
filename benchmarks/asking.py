"""Command of `benchmarks/comparison/asking`."""

from benchmarks.comparison.asking import main

if __name__ == "__main__":
    raise SystemExit(main())
