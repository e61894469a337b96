"""Command of `benchmarks/papers/egp`."""

from benchmarks.papers.egp.benchmark import main

if __name__ == "__main__":
    raise SystemExit(main())
