"""The JSON Schemas in `docs/schemas` and the code accept the same."""

import copy
import importlib.util
import json
import random
import re
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given

from connectors.topics import Record
from connectors.wire.codec import TAGS, TYPES, DecodeError, decode, encode
from connectors.wire.inbound import read
from connectors.wire.outbound import Outbound
from connectors.wire.state_records import History, HistoryError, state
from streamgp.interactive import Answer, Cancel, Event, Rejected
from streamgp.interactive.messages import Fault, Stage

HERE = Path(__file__).parent
DOCS = HERE.parents[2] / "docs"
if not DOCS.is_dir():
    pytest.skip("docs/ is not beside the tests", allow_module_level=True)
jsonschema = pytest.importorskip("jsonschema")


def module_at(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


MESSAGES_MD = (DOCS / "messages.md").read_text(encoding="utf-8")
generated = module_at(DOCS / "schemas" / "generate.py")
SCHEMAS = generated.schemas()
VALIDATORS = {name: jsonschema.Draft202012Validator(schema) for name, schema in SCHEMAS.items()}
golden = module_at(HERE / "test_golden.py")
messages = module_at(HERE / "test_codec.py").messages()
NOW = 1_700_000_000.0


def test_the_files_are_what_generate_writes():
    files = {path.name: path.read_text("utf-8") for path in (DOCS / "schemas").glob("*.json")}
    assert files == {
        f"{name}.schema.json": generated.as_text(schema) for name, schema in SCHEMAS.items()
    }


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_schema_is_one_and_refers_to_nothing_outside(name):
    schema = SCHEMAS[name]
    jsonschema.Draft202012Validator.check_schema(schema)
    references = set(re.findall(r'"\$ref": "([^"]*)"', json.dumps(schema)))
    assert references == {f"#/$defs/{name}" for name in schema.get("$defs", {})}


@pytest.mark.parametrize("name", SCHEMAS)
def test_patterns_have_only_escapes_that_every_language_reads(name):
    patterns = re.findall(r'"pattern": ("(?:[^"\\]|\\.)*")', json.dumps(SCHEMAS[name]))
    escapes = {escape for each in patterns for escape in re.findall(r"\\(.)", json.loads(each))}
    assert escapes <= set("xdsS.")  # Go's regular expressions (RE2) have no \\u


@pytest.mark.parametrize("name", SCHEMAS)
def test_every_field_is_described(name):
    schema = SCHEMAS[name]
    for field, described in schema["properties"].items():
        assert described.get("description") or field in ("type", "version")
    assert schema["description"].endswith(".")


def test_there_is_a_schema_of_every_message_and_of_every_terse_input():
    terse = {f"terse-{TAGS[kind]}" for kind in (Event, Answer, Cancel)}
    others = {"state", "headers", "dead-letter-headers"}
    assert set(SCHEMAS) == {*TYPES, *terse, *others}


# --- acceptance of written records


@given(messages)
def test_every_message_is_accepted_by_its_schema(message):
    VALIDATORS[TAGS[type(message)]].validate(json.loads(encode(message)))


@pytest.mark.parametrize("out", golden.written(), ids=lambda out: out.topic)
def test_every_record_that_is_written_is_accepted_with_its_headers(out):
    headers = {name: value.decode() for name, value in out.headers}
    if out.topic == "state":
        assert headers == {}
        if out.value is not None:
            VALIDATORS["state"].validate(json.loads(out.value))
    elif out.topic == "dead-letters":
        VALIDATORS["dead-letter-headers"].validate(headers)
    else:
        VALIDATORS["headers"].validate(headers)


@pytest.mark.parametrize(
    ("fault", "stage"),
    [*((fault, None) for fault in get_args(Fault)), *(("failed", s) for s in get_args(Stage))],
)
def test_headers_of_every_dead_letter_are_accepted(fault, stage):
    rejected = Rejected(subject="e1", key="ann", fault=fault, reason="r", at=NOW, stage=stage)
    out = Outbound("/streamgp/rooms", keyed=True).dead_letter(rejected, None, 3)
    headers = {name: value.decode() for name, value in out.headers}
    VALIDATORS["dead-letter-headers"].validate(headers)


@pytest.mark.parametrize(
    "changed",
    [
        {"ce_specversion": "0.3"},
        {"ce_type": "streamgp.event.v2"},
        {"ce_source": "rooms"},
        {"ce_id": "a b"},
        {"ce_time": "2023-11-14 22:13:20"},
        {"content-type": "text/plain"},
        {"dlq.stage": "think"},
        {"dlq.topic": "events", "dlq.partition": "3"},
        {"dlq.topic": "rooms", "dlq.role": "state", "dlq.partition": "3", "dlq.offset": "0"},
        {"dlq.role": "events"},
        {"dlq.topic": "events", "dlq.partition": "3", "dlq.offset": "-1"},
    ],
)
def test_other_headers_are_refused(changed):
    rejected = Rejected(subject="e1", key="ann", fault="late", reason="r", at=NOW)
    out = Outbound("/streamgp/rooms", keyed=True).dead_letter(rejected, None, 3)
    headers = {name: value.decode() for name, value in out.headers}
    name = "headers" if next(iter(changed)).startswith("c") else "dead-letter-headers"
    assert VALIDATORS[name].is_valid(headers)
    assert not VALIDATORS[name].is_valid({**headers, **changed})


# --- mutated records: accepted by both or by neither

VALUES = [
    *(None, True, False, 0, 1, -3, 2, 0.5, 1e300, "", "e1", "a\x1fb", "e" * 1025, "asked"),
    *("label", "e1/label", "e1/challenge/2", "event", "answer", 2**63 - 1, -(2**63), 5 * 10**12),
    *([], {}, [1], {"a": 1}, {"float": 1.5}, {"float": "1"}, {"double": 1}, {"a": {"float": 1.5}}),
    *(
        [["a", 1]],
        [["a", 1], [2, "b"]],
        [["a"]],
        [[["a"], 1]],
        [[{"float": 1.5}, 0.5]],
        [["a", None]],
    ),
    {"ask": False, "score": 0.0, "threshold": 1, "criterion": "c", "budget": None},
    {"event_id": None, "x": {}, "y": 1, "distance": 0.5},
    [{"event_id": "e0", "x": [["a", 1]], "y": {"float": 1}, "distance": 0}],
]
# What a schema cannot say.
BEYOND = re.compile(
    r"prediction: ask must equal score > threshold and budget is None, got |"
    r"[a-z.]+: (x|proba) must name every (feature|label) once, got |"
    r"[a-z.]+: [a-z_]+ must be at most a day after its record was written"
)


def mutated(rng, plain):
    """Return the document with a value changed, a field left out or added, at any depth."""
    plain = copy.deepcopy(plain)
    place = plain
    while rng.random() < 0.35:
        inner = [v for v in (place.values() if isinstance(place, dict) else place) if v]
        inner = [value for value in inner if isinstance(value, dict | list)]
        if not inner:
            break
        place = rng.choice(inner)
    names = list(place) if isinstance(place, dict) else list(range(len(place)))
    name = rng.choice(names)
    match rng.randrange(4):
        case 0:
            del place[name]
        case 1 if isinstance(place, dict):
            added = ["colour", "y", "declined", "request_id", "event_id", "expires_at", "float"]
            place[rng.choice(added)] = rng.choice(VALUES)
        case _:
            place[name] = rng.choice(VALUES)
    return plain


def documents(originals, n, seed):
    rng = random.Random(seed)
    for _ in range(n):
        plain = rng.choice(originals)
        for _ in range(rng.choice([1, 1, 1, 2, 3])):
            plain = mutated(rng, plain) or plain
        yield plain


def flaw_of(function, *args, **kwargs):
    try:
        function(*args, **kwargs)
    except (DecodeError, HistoryError) as error:
        return str(error)
    return None


def agree(validator, plain, flaw):
    """Whether schema and code accept a document, or both refuse it, or only the code can see."""
    if flaw is not None and BEYOND.match(flaw):
        return None
    assert validator.is_valid(plain) == (flaw is None), (plain, flaw)
    return flaw is None


PLAIN = [json.loads(encode(message)) for message in golden.MESSAGES]


@pytest.mark.parametrize("tag", TYPES)
def test_a_message_that_was_mutated_is_accepted_by_both_or_by_neither(tag):
    originals = [plain for plain in PLAIN if plain["type"] == tag]
    verdicts = []
    for plain in documents(originals, 600, seed=1):
        if plain.get("type") != tag:
            assert not VALIDATORS[tag].is_valid(plain)
            continue
        verdicts.append(agree(VALIDATORS[tag], plain, flaw_of(decode, json.dumps(plain).encode())))
    assert min(verdicts.count(True), verdicts.count(False)) > 80


@pytest.mark.parametrize("tag", ["event", "answer", "label.cancel"])
def test_a_terse_input_that_was_mutated_is_accepted_by_both_or_by_neither(tag):
    validator = VALIDATORS[f"terse-{tag}"]
    terse = {
        "event": [{"x": {"a": 1}}, {"x": [], "y": 1, "occurred_at": 5}, {"version": 1, "x": {}}],
        "answer": [{"request_id": "e1/label", "y": 1}, {"event_id": "e1", "declined": True}],
        "label.cancel": [{"type": "label.cancel", "request_id": "e1/label", "why": ""}],
    }[tag]
    default = "event" if tag == "event" else "answer"
    originals = [*terse, *(plain for plain in PLAIN if plain["type"] == tag)]
    verdicts = []
    for plain in documents(originals, 1200, seed=2):
        if plain.get("type", default) != tag:
            continue
        key = plain.get("key")
        record = Record(
            topic="events" if tag == "event" else "answers",
            partition=0,
            offset=0,
            key=key.encode() if isinstance(key, str) else b"ann",
            value=json.dumps(plain).encode(),
            at=NOW,
        )
        message = read(record, keyed=True)
        flaw = message.reason if isinstance(message, Rejected) else None
        verdicts.append(agree(validator, plain, flaw))
    assert min(verdicts.count(True), verdicts.count(False)) > 80


def test_a_state_record_that_was_mutated_is_accepted_by_both_or_by_neither():
    original = json.loads(state("ann", "head", {"n": [1, None]}, 0).value)
    verdicts = []
    for plain in documents([original], 1500, seed=3):
        key, name = plain.get("key"), plain.get("name")
        entity = key if isinstance(key, str) and "\x1f" not in key else "ann"
        part = name if isinstance(name, str) and "\x1f" not in name else "head"
        history = History()
        out = state(entity, part, 1, 0)
        value = json.dumps(plain).encode()
        history.take(Record(topic="state", partition=0, offset=0, key=out.key, value=value, at=NOW))
        verdicts.append(agree(VALIDATORS["state"], plain, flaw_of(history.parts, entity)))
    assert min(verdicts.count(True), verdicts.count(False)) > 100


def test_a_whole_number_with_a_fraction_is_refused_though_a_schema_cannot_tell():
    line = encode(golden.MESSAGES[-6])
    plain = json.loads(line) | {"sequence": 13.0, "type": "consensus"}
    assert VALIDATORS["consensus"].is_valid(plain)
    assert "sequence must be int" in flaw_of(decode, json.dumps(plain).encode())


# --- the texts about the schemas


def rows(heading):
    text = generated.section(MESSAGES_MD, heading)
    found = re.findall(r"^\| `([^`]+)` \| (.*?) \|$", text, re.M)
    return {name: meaning.strip("`") for name, meaning in found}


def test_the_document_tells_the_id_of_every_message():
    told = rows("Headers")
    outbox = Outbound("/streamgp/rooms", keyed=False)
    for message in golden.MESSAGES:
        tag = TAGS[type(message)]
        if tag == "rejected":
            out = outbox.dead_letter(message, None, 3)
        else:
            out = outbox.message(message, 3)
        fields = {name: getattr(message, name) for name in message.__slots__}
        expected = re.sub(r"<(\w+)>", lambda found: str(fields[found[1]]), told[tag])  # noqa: B023
        assert dict(out.headers)["ce_id"].decode() == f"{message.key or ''}/{expected}"


@pytest.mark.parametrize("heading", ["Terse inputs", "State records"])
def test_examples_beside_the_rules_are_read(heading):
    block = re.search(r"```json\n(.*?)```", generated.section(MESSAGES_MD, heading), re.S)
    for line in block[1].splitlines():
        plain = json.loads(line)
        if heading == "State records":
            out = state(plain["key"], plain["name"], plain["value"], 0)
            assert out.value.decode() == line
        else:
            topic = "events" if "x" in plain else "answers"
            place = {"topic": topic, "partition": 0, "offset": 0, "at": NOW}
            found = read(Record(key=b"ann", value=line.encode(), **place), keyed=True)
            assert isinstance(found, Event | Answer)
