"""Command of `benchmarks/performance/page`."""

from benchmarks.performance.page import main

if __name__ == "__main__":
    raise SystemExit(main())
