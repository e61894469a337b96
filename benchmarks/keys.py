"""Command of `benchmarks/performance/keys`."""

from benchmarks.performance.keys import main

if __name__ == "__main__":
    raise SystemExit(main())
