"""Command of `benchmarks/comparison/persistence`."""

from benchmarks.comparison.persistence import main

if __name__ == "__main__":
    raise SystemExit(main())
