"""Command of `benchmarks/comparison/review`."""

from benchmarks.comparison.review import main

if __name__ == "__main__":
    raise SystemExit(main())
