"""Command of `benchmarks/comparison/label_errors`."""

from benchmarks.comparison.label_errors import main

if __name__ == "__main__":
    raise SystemExit(main())
