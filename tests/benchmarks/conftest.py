"""The benchmarks are tested where they lie beside the tests: in a checkout.

Those that take half a second or more, however small, run by night, as all benchmarks do then.
"""

from pathlib import Path

if not (Path(__file__).parents[2] / "benchmarks").is_dir():
    collect_ignore_glob = ["test_*.py"]
