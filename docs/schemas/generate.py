"""Writes the JSON Schemas beside this file: `python docs/schemas/generate.py`.

Fields and types come from the message classes, descriptions from the tables in `docs/messages.md`,
so that a field is described in one place only. A test holds that the files are as this writes them.

"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, fields
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from connectors.wire.cloudevents import EARLIEST, LATEST
from connectors.wire.codec import TYPES
from connectors.wire.explain import LARGEST, SMALLEST
from connectors.wire.inbound import MAX_NAME
from streamgp.base import Decision, Features, Label, Neighbour
from streamgp.interactive.messages import MOST_IN_EXCERPT, Answer, Cancel, Event, Excerpt, Stage

HERE = Path(__file__).parent
Schema = dict[str, Any]
DIALECT = "https://json-schema.org/draft/2020-12/schema"

TEXT = {"type": "string"}
NUMBER = {"type": "number"}
SCALAR = {"type": ["boolean", "number", "string"]}
VALUE = {"type": [*SCALAR["type"], "null"]}
LABEL = {
    "description": "A text, an integer within 64 bits, a boolean, or a float, which is tagged.",
    "anyOf": [SCALAR, {"$ref": "#/$defs/float"}],
}
DEFS: dict[str, Schema] = {
    "float": {
        "description": 'A float where 1.0 and 1 must not be confused: {"float": 1.0}.',
        "type": "object",
        "properties": {"float": NUMBER},
        "required": ["float"],
    },
    "label": LABEL,
    "features": {
        "description": "An object; or pairs of name and value if a name is not a text. Null is a "
        "missing value; workers leave it out.",
        "anyOf": [
            {"type": "object", "additionalProperties": VALUE},
            {
                "type": "array",
                "items": {
                    "type": "array",
                    "prefixItems": [{"$ref": "#/$defs/label"}, VALUE],
                    "minItems": 2,
                    "maxItems": 2,
                },
            },
        ],
    },
    "probabilities": {
        "description": "Pairs of label and probability.",
        "type": "array",
        "items": {
            "type": "array",
            "prefixItems": [{"$ref": "#/$defs/label"}, NUMBER],
            "minItems": 2,
            "maxItems": 2,
        },
    },
}
OF_TYPE: list[tuple[Any, Schema]] = [
    (str, TEXT),
    (float, NUMBER),
    (int, {"type": "integer", "minimum": SMALLEST, "maximum": LARGEST}),
    (bool, {"type": "boolean"}),
    (Label, {"$ref": "#/$defs/label"}),
    (Features, {"$ref": "#/$defs/features"}),
    (Mapping[Label, float], {"$ref": "#/$defs/probabilities"}),
    (Mapping[str, Any], {"type": "object"}),
    (
        Excerpt,
        {
            "type": "object",
            "additionalProperties": {
                "type": "array",
                "items": {"type": ["number", "null"]},
                "maxItems": MOST_IN_EXCERPT,
            },
        },
    ),
    (Decision, {"$ref": "#/$defs/Decision"}),
    (tuple[Neighbour, ...], {"type": "array", "items": {"$ref": "#/$defs/Neighbour"}}),
    (tuple[str, ...], {"type": "array", "items": TEXT}),
    (
        Mapping[str, Sequence[float]],
        {"type": "object", "additionalProperties": {"type": "array", "items": NUMBER}},
    ),
]
# Written as every language's regular expressions read it: Go's know no \u.
CONTROL = {"pattern": "[\\x00-\\x1f\\x7f-\\x9f]"}
TIME = {"type": "number", "minimum": EARLIEST, "maximum": LATEST}
NAMES = ("key", "event_id", "answer_id", "request_id", "supersedes", "annotator", "y", "truth")
MAY_BE_EMPTY = ("annotator", "y", "truth")
TIMES = ("occurred_at", "answered_at", "at")
# what an input may leave out, beside its type and version
TERSE: dict[type, tuple[str, ...]] = {
    Event: ("event_id", "occurred_at"),
    Answer: ("answer_id", "event_id", "answered_at"),
    Cancel: ("at",),
}
ONE_OF_TWO: list[Schema] = [
    {"required": ["y"], "properties": {"y": {"not": {"type": "null"}}}},
    {"required": ["declined"], "properties": {"declined": {"const": True}}},
]


def schemas() -> dict[str, Schema]:
    """Return every schema by the name of its file, without `.schema.json`."""
    text = (HERE.parent / "messages.md").read_text(encoding="utf-8")
    found = {}
    for tag, kind in TYPES.items():
        body = object_of(kind, text)
        head = {"type": {"const": tag}, "version": {"const": 1}}
        body["properties"] = {**head, **body["properties"]}
        body["required"] = [*head, *body["required"]]
        if kind is Answer:
            body["oneOf"] = ONE_OF_TWO
        found[tag] = document(tag, paragraph(text, kind.__name__), body, text)
        if kind in TERSE:
            found[f"terse-{tag}"] = document(
                f"terse-{tag}",
                paragraph(text, kind.__name__) + " As a worker reads it, the record's key given.",
                terse(kind, body),
                text,
            )
    found["state"] = document("state", paragraph(text, "State records"), state(text), text)
    for name, heading in (("headers", "Headers"), ("dead-letter-headers", "Dead letters")):
        found[name] = document(name, paragraph(text, heading), headers(heading, text), text)
    return found


def document(name: str, description: str, body: Schema, text: str) -> Schema:
    """Return a schema that stands alone: with all that it refers to, and nothing else."""
    known = {
        **DEFS,
        "Decision": object_of(Decision, text),
        "Neighbour": object_of(Neighbour, text),
    }
    used: dict[str, Schema] = {}
    wanted = references(body)
    while wanted:
        used |= {ref: known[ref] for ref in wanted}
        wanted = {ref for ref in references(list(used.values())) if ref not in used}
    head = {"$schema": DIALECT, "$id": f"urn:streamgp:v1:{name}", "description": description}
    defs = {"$defs": {ref: known[ref] for ref in sorted(used)}} if used else {}
    return {**head, **body, **defs}


def references(schema: Any) -> set[str]:
    """Return the names of all definitions that a schema refers to."""
    return set(re.findall(r'"#/\$defs/(\w+)"', json.dumps(schema)))


def object_of(kind: type, text: str) -> Schema:
    """Return the schema of a class as an object; fields that are not known are ignored."""
    hints = get_type_hints(kind)
    described = table(text, kind.__name__)
    return {
        "type": "object",
        "properties": {
            field.name: property_of(field, hints[field.name], described[field.name])
            for field in fields(kind)
        },
        "required": [field.name for field in fields(kind) if field.default is MISSING],
    }


def property_of(field: Field[Any], hint: Any, description: str) -> Schema:
    schema = {"description": description, **schema_of(hint)}
    if field.default is not MISSING:
        schema["default"] = list(field.default) if field.default == () else field.default
    return schema


def schema_of(hint: Any) -> Schema:
    for known, schema in OF_TYPE:
        if hint == known:
            return schema
        if hint == known | None:
            kind = schema.get("type")
            if kind is None:
                return {"anyOf": [schema, {"type": "null"}]}
            return {**schema, "type": [kind, "null"]}
    if get_origin(hint) is Union:
        literal, _none = get_args(hint)
        return {"enum": [*get_args(literal), None]}
    assert get_origin(hint) is Literal, hint
    return {"enum": list(get_args(hint))}


def terse(kind: type, body: Schema) -> Schema:
    """Return the schema of an input that leaves out what its record tells, and is checked."""
    properties = {name: tightened(name, schema) for name, schema in body["properties"].items()}
    may_lack = (*TERSE[kind], "version", *(() if kind is Cancel else ("type",)))
    found = {
        **body,
        "properties": properties,
        "required": [name for name in body["required"] if name not in may_lack],
    }
    if kind is Answer:
        ending = {"type": "string", "pattern": "^[\\s\\S]+/(label|challenge/[^/]*)$"}
        found["anyOf"] = [
            {"required": ["event_id"]},
            {"required": ["request_id"], "properties": {"request_id": ending}},
        ]
    return found


def tightened(name: str, schema: Schema) -> Schema:
    if name in TIMES:
        return {**schema, **TIME}
    if name in ("x", "privileged"):
        longest = {"maxLength": MAX_NAME}
        return {**schema, "propertyNames": longest, "items": {"prefixItems": [longest]}}
    if name not in NAMES:
        return schema
    least = {} if name in MAY_BE_EMPTY else {"minLength": 1}
    most = MAX_NAME + 32 if name == "request_id" else MAX_NAME
    bounds = {**least, "maxLength": most, "not": {"type": "string", **CONTROL}}
    return {**schema, **bounds}


def state(text: str) -> Schema:
    described = table(text, "State records")
    part = {**TEXT, "not": {"pattern": "\\x1f"}}
    return {
        "type": "object",
        "properties": {
            "type": {"const": "state"},
            "version": {"const": 1},
            "key": {"description": described["key"], **part},
            "name": {"description": described["name"], **part},
            "value": {"description": described["value"]},
        },
        "required": ["type", "version", "key", "name", "value"],
    }


def headers(heading: str, text: str) -> Schema:
    """Return the schema of the headers under a heading, as an object of texts."""
    described = table(text, heading)
    time = {"pattern": "^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{6}Z$"}
    number = {"pattern": "^(0|[1-9]\\d*)$"}
    rules: dict[str, Schema] = {
        "ce_specversion": {"const": "1.0"},
        "ce_type": {"enum": [f"streamgp.{tag}.v1" for tag in TYPES]},
        "ce_source": {"pattern": "^/streamgp/"},
        "ce_id": {"pattern": "^[A-Za-z0-9_.~%-]*/"},
        "ce_time": time,
        "content-type": {"const": "application/json"},
        "dlq.topic": {"minLength": 1},
        "dlq.role": {"enum": ["events", "answers", "consensus"]},
        "dlq.partition": number,
        "dlq.offset": number,
        "dlq.stage": {"enum": ["decode", "correlate", "quarantine", *get_args(Stage)]},
        "dlq.error": {"maxLength": 500},
        "dlq.at": time,
        "dlq.truncated": number,
        "dlq.sha256": {"pattern": "^[0-9a-f]{64}$"},
    }
    names = [name for name in described if name in rules]
    found: Schema = {
        "type": "object",
        "properties": {
            name: {"description": described[name], "type": "string", **rules[name]}
            for name in names
        },
        "required": names,
    }
    if "dlq.topic" in names:
        place = ["dlq.topic", "dlq.partition", "dlq.offset"]
        found["required"] = ["dlq.stage", "dlq.error", "dlq.at"]
        found["dependentRequired"] = {
            **{name: [n for n in place if n != name] for name in place},
            "dlq.role": place,
            "dlq.sha256": ["dlq.truncated"],
        }
    return found


def section(text: str, heading: str) -> str:
    found = re.search(rf"^#+ {re.escape(heading)}\n(.*?)(?=^#|\Z)", text, re.M | re.S)
    assert found, f"docs/messages.md has no heading {heading!r}"
    return found[1]


def paragraph(text: str, heading: str) -> str:
    """Return the first paragraph under a heading, without marks and the type on the wire."""
    first = section(text, heading).strip().split("\n\n")[0].replace("\n", " ")
    return plain(re.sub(r" Type on the wire: `[a-z.]+`\.", "", first)).rstrip(":") + (
        "" if first.endswith(".") else "."
    )


def table(text: str, heading: str) -> dict[str, str]:
    """Return the first two columns of the tables under a heading."""
    lines = re.findall(r"^\| `([^`]+)` \| (.*?) \|", section(text, heading), re.M)
    return {name: plain(meaning) for name, meaning in lines}


def plain(text: str) -> str:
    return re.sub(r"\[([^\]]+)\]\([^)]+\)", r"\1", text).replace("`", "")


def as_text(schema: Schema) -> str:
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    for name, schema in schemas().items():
        (HERE / f"{name}.schema.json").write_text(as_text(schema), encoding="utf-8")
