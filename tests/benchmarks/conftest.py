"""The benchmarks are tested where they lie beside the tests: in a checkout."""

import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
if (ROOT / "benchmarks").is_dir():
    sys.path.append(str(ROOT))  # at the end: an installed streamgp comes first
else:
    collect_ignore_glob = ["test_*.py"]
