"""Command of `benchmarks/performance/takeovers`."""

from benchmarks.performance.takeovers import main

if __name__ == "__main__":
    raise SystemExit(main())
