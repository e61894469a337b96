"""Command of `benchmarks/comparison/regression`."""

from benchmarks.comparison.regression import main

if __name__ == "__main__":
    raise SystemExit(main())
