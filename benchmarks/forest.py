"""Command of `benchmarks/comparison/forest`."""

from benchmarks.comparison.forest import main

if __name__ == "__main__":
    raise SystemExit(main())
