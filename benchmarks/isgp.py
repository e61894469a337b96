"""Command of `benchmarks/papers/isgp`."""

from benchmarks.papers.isgp.benchmark import main

if __name__ == "__main__":
    raise SystemExit(main())
