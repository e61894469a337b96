"""Command of `benchmarks/comparison/equal_error`."""

from benchmarks.comparison.equal_error import main

if __name__ == "__main__":
    raise SystemExit(main())
