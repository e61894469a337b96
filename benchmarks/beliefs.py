"""Command of `benchmarks/comparison/beliefs`."""

from benchmarks.comparison.beliefs import main

if __name__ == "__main__":
    raise SystemExit(main())
