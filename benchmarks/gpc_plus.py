"""Command of `benchmarks/papers/gpc_plus`."""

from benchmarks.papers.gpc_plus.benchmark import main

if __name__ == "__main__":
    raise SystemExit(main())
