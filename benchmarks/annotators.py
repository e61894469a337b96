"""Command of `benchmarks/comparison/annotators`."""

from benchmarks.comparison.annotators import main

if __name__ == "__main__":
    raise SystemExit(main())
