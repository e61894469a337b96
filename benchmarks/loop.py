"""Command of `benchmarks/performance/loop`."""

from benchmarks.performance.loop import main

if __name__ == "__main__":
    raise SystemExit(main())
