"""Command of `benchmarks/comparison/bounded`."""

from benchmarks.comparison.bounded import main

if __name__ == "__main__":
    raise SystemExit(main())
