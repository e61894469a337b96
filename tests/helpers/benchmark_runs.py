"""Runs of benchmarks, as their commands run them."""

import json
import re

from benchmarks import _harness as harness


def document(tmp_path, name, measure, *arguments):
    """Run a benchmark; return the JSON that it writes, which is checked, and its exit status."""
    path = tmp_path / f"{name}.json"
    status = harness.run(name, measure, about=None, argv=["--json", str(path), *arguments])
    found = json.loads(path.read_text())
    _check(found, name, quick="--quick" in arguments)
    return found, status


def _check(document, name, *, quick):
    assert list(document) == [
        "benchmark", "version", "quick", "seed", "date", "machine", "versions", "rows", "acceptance"
    ]  # fmt: skip
    assert re.fullmatch(r"20\d\d-\d\d-\d\d", document["date"])
    assert (document["benchmark"], document["version"], document["quick"]) == (name, 1, quick)
    assert {"python", "streamgp", "numpy", "scipy", "river"} <= document["versions"].keys()
    assert document["rows"]
    flat = (str, int, float, type(None))
    assert all(isinstance(v, flat) for row in document["rows"] for v in row.values())
    for accepted in document["acceptance"]:
        assert list(accepted) == ["name", "value", "limit", "ok"]
        value, limit = accepted["value"], accepted["limit"]
        is_met = value is not None and (
            value >= limit if "(at least)" in accepted["name"] else value <= limit
        )
        assert accepted["ok"] == is_met
