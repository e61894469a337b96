"""Lines of a person are taken out of a file of messages, and nothing else."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.jsonl import count_lines, remove_lines
from connectors.storage.snapshots import StateError
from connectors.wire.codec import encode
from streamgp.interactive import Answer

KEYS = st.text(max_size=3) | st.sampled_from(['"', "\\", "ä", "\n", '"key":"a"', "a", None])


@given(keys=st.lists(KEYS, max_size=12), gone=KEYS.filter(lambda key: key is not None))
def test_what_is_left_is_as_it_was(
    keys: list[str | None], gone: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("erase") / "answers.jsonl"
    lines = [
        # Another annotator's label may be spelt like the key.
        encode(Answer(answer_id=str(n), event_id="1", key=key, y=gone, answered_at=0.0)) + b"\n"
        for n, key in enumerate(keys)
    ]
    path.write_bytes(b"".join(lines))
    others = b"".join(line for line, key in zip(lines, keys, strict=True) if key != gone)
    assert count_lines(path, [gone]) == keys.count(gone)
    for _ in range(2):
        assert remove_lines(path, [gone], path.stat().st_size) == len(others)
        assert path.read_bytes() == others


def test_what_follows_the_cut_goes_too(tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    path.write_text('{"key":"ann"}\n{"key":"bob"}\n{"key":"cy"}\n{"key":"a')
    assert count_lines(path, ["ann", "bob"]) == 2
    assert remove_lines(path, ["ann"], 28) == 14
    assert path.read_text() == '{"key":"bob"}\n'


def test_damaged_line_that_names_the_key_goes_and_others_stay(tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    lines = ['{"key":"ann"\n', '{"x":"bob"\n', "[]\n", '{"key":7,"y":"ann"}\n', "\udcff\n"]
    path.write_bytes("".join(lines).encode("utf-8", "surrogateescape"))
    remove_lines(path, ["ann"], 10_000)
    assert path.read_bytes() == b'{"x":"bob"\n[]\n\xff\n'


def test_permissions_stay_as_they_were(tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    path.write_text(json.dumps({"key": "ann"}) + "\n")
    path.chmod(0o640)
    assert remove_lines(path, ["ann"], 1000) == 0
    assert path.stat().st_mode & 0o777 == 0o640


def test_file_that_is_not_there_has_no_lines_and_cannot_be_written(tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    assert count_lines(path, ["ann"]) == 0
    with pytest.raises(StateError, match=r"cannot write .*answers\.jsonl: No such file"):
        remove_lines(path, ["ann"], 10)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(StateError, match=r"cannot read .*: Is a directory"):
        count_lines(tmp_path, ["ann"])


def test_crash_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "answers.jsonl"
    path.write_text('{"key":"ann"}\n')

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StateError, match="No space left on device; free some space"):
        remove_lines(path, ["ann"], 14)
    assert [p.name for p in tmp_path.iterdir()] == ["answers.jsonl"]
    assert path.read_text() == '{"key":"ann"}\n'
