"""Command of `benchmarks/papers/location`."""

from benchmarks.papers.location.benchmark import main

if __name__ == "__main__":
    raise SystemExit(main())
