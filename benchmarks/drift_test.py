"""Command of `benchmarks/comparison/drift_test`."""

from benchmarks.comparison.drift_test import main

if __name__ == "__main__":
    raise SystemExit(main())
