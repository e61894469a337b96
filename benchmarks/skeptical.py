"""Command of `benchmarks/comparison/skeptical`."""

from benchmarks.comparison.skeptical import main

if __name__ == "__main__":
    raise SystemExit(main())
