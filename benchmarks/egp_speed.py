"""Command of `benchmarks/performance/egp_speed`."""

from benchmarks.performance.egp_speed import main

if __name__ == "__main__":
    raise SystemExit(main())
