"""Command of `benchmarks/performance/kafka`."""

from benchmarks.performance.kafka.benchmark import main

if __name__ == "__main__":
    raise SystemExit(main())
