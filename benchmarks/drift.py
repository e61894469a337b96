"""Command of `benchmarks/comparison/drift`."""

from benchmarks.comparison.drift import main

if __name__ == "__main__":
    raise SystemExit(main())
