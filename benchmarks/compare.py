"""Command of `benchmarks/comparison/compare`."""

from benchmarks.comparison.compare.benchmark import main

if __name__ == "__main__":
    raise SystemExit(main())
