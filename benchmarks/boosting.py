"""Command of `benchmarks/papers/boosting`."""

from benchmarks.papers.boosting.benchmark import main

if __name__ == "__main__":
    raise SystemExit(main())
