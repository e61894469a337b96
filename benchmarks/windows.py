"""Command of `benchmarks/performance/windows`."""

from benchmarks.performance.windows import main

if __name__ == "__main__":
    raise SystemExit(main())
