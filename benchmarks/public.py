"""Command of `benchmarks/comparison/public`."""

from benchmarks.comparison.public.benchmark import main

if __name__ == "__main__":
    raise SystemExit(main())
