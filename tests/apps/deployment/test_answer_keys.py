"""Keys of annotators: made once, for their owner alone, known at once, repeated in no message."""

import json
import re

import pytest
from click.testing import CliRunner

from connectors.wire.signatures import HEADER
from streamgp.apps.deployment.answer_keys import AnswerKeys, signatures_of
from streamgp.cli.main import cli
from streamgp.config.settings import People, WorkerConfig
from streamgp.config.validation import ConfigError
from streamgp.interactive.messages import Answer

ANSWER = Answer(answer_id="a", event_id="e", key="k", y="hall", annotator="ann", answered_at=1.0)


def test_a_key_is_made_once_for_its_owner_alone_and_known_elsewhere_at_once(tmp_path):
    file = tmp_path / "keys.json"
    here, there = (AnswerKeys(People(keys_file=str(file))) for _ in range(2))
    assert not there.keys_of("ann")
    here.make("ann")
    [key] = here.keys_of("ann")
    assert len(key) == 32
    assert there.keys_of("ann") == [key]
    here.make("ann")
    there.make("bob")
    assert (here.keys_of("ann"), here.keys_of("bob")) == ([key], there.keys_of("bob"))
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_file_that_is_being_edited_takes_no_key_away_and_the_log_says_so_once(tmp_path, caplog):
    file = tmp_path / "keys.json"
    keys = AnswerKeys(People(keys_file=str(file)))
    keys.make("ann")
    [key] = keys.keys_of("ann")
    file.write_text('{"ann": "12')
    assert [keys.keys_of("ann"), keys.keys_of("ann")] == [[key], [key]]
    [line] = caplog.records
    assert (line.name, line.levelname, line.msg) == ("streamgp.keys", "WARNING", "keys-unused")
    assert line.fields["reason"].startswith("people.keys_file: no keys found in ")
    assert key.hex() not in str(line.fields)
    file.write_text(json.dumps({"ann": "ab" * 16}))
    assert keys.keys_of("ann") == [b"\xab" * 16]
    file.write_text("{}")
    assert not keys.keys_of("ann")


def test_a_name_may_have_several_keys_which_stay_when_another_name_gets_one(tmp_path):
    file = tmp_path / "keys.json"
    keys = AnswerKeys(People(keys_file=str(file)))
    file.write_text(json.dumps({"ann": ["ab" * 16, "cd" * 16], "bob": "ef" * 16}))
    keys.make("ann")
    keys.make("joe")
    assert keys.keys_of("ann") == [b"\xab" * 16, b"\xcd" * 16]
    assert keys.keys_of("bob") == [b"\xef" * 16]
    written = json.loads(file.read_text())
    assert (written["ann"], written["bob"]) == (["ab" * 16, "cd" * 16], "ef" * 16)
    assert keys.keys_of("joe") == [bytes.fromhex(written["joe"])]


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("hush", "no keys found in WHERE, expected"),
        ('{"ann": "hush"}', "no keys found in WHERE, expected"),
        ('{"ann": 3}', "no keys found in WHERE, expected"),
        ('{"ann": []}', "no keys found in WHERE, expected"),
        (f'{{"ann": ["{"ab" * 16}", "hush"]}}', "no keys found in WHERE, expected"),
        (f'{{"ann": ["{"ab" * 16}", "abcd"]}}', "a key found in WHERE is too short, expected"),
        (
            '{"ann": "abcd"}',
            "a key found in WHERE is too short, expected at least 32 hexadecimal digits",
        ),
    ],
)
@pytest.mark.parametrize("kept", ["file", "env"])
def test_what_holds_no_keys_is_refused_and_not_repeated(tmp_path, monkeypatch, kept, text, match):
    (tmp_path / "keys.json").write_text(text)
    monkeypatch.setenv("KEYS", text)
    people = {"file": People(keys_file=str(tmp_path / "keys.json")), "env": People(keys_env="KEYS")}
    where = {"file": str(tmp_path / "keys.json"), "env": "KEYS"}[kept]
    match = re.escape(match.replace("WHERE", where))
    with pytest.raises(ConfigError, match=match) as caught:
        AnswerKeys(people[kept])
    assert str(caught.value).startswith(f"people.keys_{kept}: ")
    assert "hush" not in str(caught.value)
    assert "abcd" not in str(caught.value)


def test_keys_in_the_environment_are_read_and_none_is_made_there(monkeypatch):
    people = People(keys_env="KEYS")
    monkeypatch.delenv("KEYS", raising=False)
    with pytest.raises(ConfigError, match=r"people\.keys_env: the environment variable that it"):
        AnswerKeys(people)
    monkeypatch.setenv("KEYS", json.dumps({"ann": "cd" * 32}))
    keys = AnswerKeys(people)
    assert keys.keys_of("ann") == [b"\xcd" * 32]
    with pytest.raises(ConfigError, match="has no key for 'bob'; add it, or name a file"):
        keys.make("bob")


def test_keys_are_in_one_place():
    with pytest.raises(ConfigError, match="give only one of them"):
        AnswerKeys(People(keys_env="KEYS", keys_file="keys.json"))


def test_without_keys_nothing_is_signed():
    assert signatures_of(WorkerConfig()) is None


def test_an_invite_makes_the_key_with_which_answers_are_signed(tmp_path):
    config = tmp_path / "w.toml"
    keys = tmp_path / "keys.json"
    config.write_text(
        f'broker = "file://{tmp_path}/topics"\n[worker]\nstate = "{tmp_path}/state"\n'
        f'[people]\nkeys_file = "{keys}"\n'
    )
    result = CliRunner().invoke(cli, ["invite", str(config), "ann"])
    assert result.exit_code == 0, result.output
    people = People(keys_file=str(keys))
    signatures = signatures_of(WorkerConfig(people=people))
    name, value = signatures.header(ANSWER)
    assert name == HEADER
    assert signatures.flaw(ANSWER, [(name, value)]) is None
    assert json.loads(keys.read_text()).keys() == {"ann"}
    assert json.loads(keys.read_text())["ann"] not in result.output
