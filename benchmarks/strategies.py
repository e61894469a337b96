"""Command of `benchmarks/comparison/strategies`."""

from benchmarks.comparison.strategies.benchmark import main

if __name__ == "__main__":
    raise SystemExit(main())
