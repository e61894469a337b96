"""Command of `benchmarks/comparison/peers`."""

from benchmarks.comparison.peers import main

if __name__ == "__main__":
    raise SystemExit(main())
