"""Command of `benchmarks/comparison/ensembles`."""

from benchmarks.comparison.ensembles import main

if __name__ == "__main__":
    raise SystemExit(main())
