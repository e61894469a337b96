"""Command of `benchmarks/comparison/wifi`."""

from benchmarks.comparison.wifi import main

if __name__ == "__main__":
    raise SystemExit(main())
