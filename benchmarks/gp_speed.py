"""Command of `benchmarks/performance/gp_speed`."""

from benchmarks.performance.gp_speed.benchmark import main

if __name__ == "__main__":
    raise SystemExit(main())
