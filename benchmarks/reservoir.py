"""Command of `benchmarks/comparison/reservoir`."""

from benchmarks.comparison.reservoir import main

if __name__ == "__main__":
    raise SystemExit(main())
