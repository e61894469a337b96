"""Command of `benchmarks/comparison/prediction_sets`."""

from benchmarks.comparison.prediction_sets import main

if __name__ == "__main__":
    raise SystemExit(main())
