"""Command of `benchmarks/comparison/temporal`."""

from benchmarks.comparison.temporal import main

if __name__ == "__main__":
    raise SystemExit(main())
