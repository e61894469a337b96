"""Command of `benchmarks/comparison/error_rates`."""

from benchmarks.comparison.error_rates import main

if __name__ == "__main__":
    raise SystemExit(main())
