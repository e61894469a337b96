"""Command of `benchmarks/comparison/review_numbers`."""

from benchmarks.comparison.review_numbers import main

if __name__ == "__main__":
    raise SystemExit(main())
