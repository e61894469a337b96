"""Runs of benchmarks, as their commands run them."""

import json

from benchmarks import _harness as harness


def document(tmp_path, name, measure, *arguments):
    """Run a benchmark; return the JSON that it writes and its exit status."""
    path = tmp_path / f"{name}.json"
    status = harness.run(name, measure, about=None, argv=["--json", str(path), *arguments])
    return json.loads(path.read_text()), status
