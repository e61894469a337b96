"""Command of `benchmarks/performance/boosting_speed`."""

from benchmarks.performance.boosting_speed import main

if __name__ == "__main__":
    raise SystemExit(main())
