"""Command of `benchmarks/comparison/pool`."""

from benchmarks.comparison.pool.benchmark import main

if __name__ == "__main__":
    raise SystemExit(main())
