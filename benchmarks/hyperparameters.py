"""Command of `benchmarks/comparison/hyperparameters`."""

from benchmarks.comparison.hyperparameters import main

if __name__ == "__main__":
    raise SystemExit(main())
