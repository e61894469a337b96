"""What a signature covers, and that no other counts."""

import hashlib
import hmac
import re
from dataclasses import fields, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.topics import Record, RefusedError
from connectors.wire.codec import decode, encode
from connectors.wire.inbound import read
from connectors.wire.outbound import Outbound
from connectors.wire.signatures import Signatures, signature
from streamgp.interactive.messages import Answer, Cancel, Rejected

KEYS = {"ann": b"a" * 32, "bob": b"b" * 32, "eve": b"e" * 32}
SIGNATURES = Signatures({name: [key] for name, key in KEYS.items()}.get, supervisors=["eve"])
ANSWER = Answer(
    answer_id="a1", event_id="e1", request_id="e1/label", key="k", y="hall", annotator="ann",
    answered_at=9.0,
)  # fmt: skip
CANCEL = Cancel(request_id="e1/label", key="k", why="enough", at=9.0)


def received(message, headers, at=9.0):
    place = {"topic": "answers", "partition": 0, "offset": 7, "at": at}
    record = Record(key=b"k", value=encode(message), headers=headers, **place)
    return read(record, keyed=True, signatures=SIGNATURES)


def test_a_signature_is_the_hmac_of_the_answer_as_it_is_written():
    by_hand = hmac.new(KEYS["ann"], encode(ANSWER), hashlib.sha256).hexdigest()
    assert SIGNATURES.header(ANSWER) == ("signature", f"hmac-sha256={by_hand}".encode())


def test_the_document_has_an_answer_with_its_signature():
    path = Path(__file__).parents[3] / "docs" / "configuration.md"
    if not path.is_file():
        pytest.skip("docs/ is not beside the tests")
    text = path.read_text(encoding="utf-8")
    key, written, signed = re.search(
        r"^With the key `(\w+)`.*?```text\n(.*?)\n(hmac-sha256=\w+)\n```", text, re.M | re.S
    ).groups()
    answer = decode(written.encode())
    assert encode(answer) == written.encode()
    assert signature(answer, bytes.fromhex(key)) == signed.encode()


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (1.7e9, "1700000000.0"),
        (1e-5, "0.00001"),
        (1e15, "1000000000000000.0"),
        (1e16, "1e16"),
        (1.5e-7, "1.5e-7"),
        (-0.1, "-0.1"),
        (7, "7"),
        ('"\\/\b\f\n\r\t\x01\x7f\u2028é', r'"\"\\/\b\f\n\r\t\u0001' + '\x7f\u2028é"'),
    ],
)
def test_what_is_signed_is_written_as_the_document_says(value, told):
    answer = replace(ANSWER, privileged={"n": value})
    assert f'"privileged":{{"n":{told}}}'.encode() in encode(answer)


@given(
    changed=st.fixed_dictionaries(
        {},
        optional={
            "answer_id": st.text(min_size=1),
            "event_id": st.text(min_size=1),
            "request_id": st.none() | st.text(min_size=1),
            "key": st.none() | st.text(min_size=1),
            "y": st.text() | st.integers(-100, 100) | st.floats(-1.0, 1.0),
            "annotator": st.sampled_from(["ann", "bob", "eve", None]),
            "answered_at": st.floats(0.0, 1e9),
            "privileged": st.dictionaries(st.text(), st.floats(0.0, 1.0), max_size=2),
            "supersedes": st.none() | st.text(min_size=1),
            "flag": st.booleans(),
            "note": st.none() | st.text(),
        },
    )
)
def test_a_signature_is_that_of_no_other_answer(changed):
    header = SIGNATURES.header(ANSWER)
    other = replace(ANSWER, **changed)
    is_same = encode(other) == encode(ANSWER)
    assert (SIGNATURES.flaw(other, [header]) is None) == is_same


def test_every_field_of_an_answer_is_covered():
    by_name = {field.name: getattr(ANSWER, field.name) for field in fields(Answer)}
    assert set(by_name) <= set(Answer.__slots__)
    declined = replace(ANSWER, y=None, declined=True)
    assert signature(declined, KEYS["ann"]) != signature(ANSWER, KEYS["ann"])
    for more in ({"std": 1.0}, {"shown": ("suggestion",)}, {"reason": "unclear"}):
        assert signature(replace(ANSWER, **more), KEYS["ann"]) != signature(ANSWER, KEYS["ann"])


@pytest.mark.parametrize(
    ("message", "headers", "reason"),
    [
        (ANSWER, [], "an answer of 'ann' must be signed, and has no header signature; sign it"),
        (ANSWER, [("signature", b"hmac-sha256=00")], "this signature is not that of 'ann'"),
        (ANSWER, [("signature", b"\xff")], "this signature is not that of 'ann'"),
        (
            ANSWER,
            [("signature", signature(ANSWER, KEYS["bob"]))],
            "this signature is not that of 'ann'; sign it with their key",
        ),
        (replace(ANSWER, annotator="joe"), [], "and there is no key of 'joe'"),
        (replace(ANSWER, annotator=None), [], "and there is no key of None"),
        (CANCEL, [], "what cancels a question must be signed, and has no header signature"),
        (CANCEL, [("signature", signature(CANCEL, KEYS["ann"]))], "not that of a supervisor"),
    ],
)
def test_what_is_not_signed_by_its_annotator_is_unauthorised(message, headers, reason):
    rejected = received(message, headers)
    assert isinstance(rejected, Rejected)
    assert (rejected.fault, rejected.subject, rejected.key) == ("unauthorised", "answers:0:7", "k")
    assert reason in rejected.reason


def test_an_answer_that_is_too_large_to_sign_once_it_is_written_is_unauthorised():
    many = b",".join([b"1e15"] * 200_000)
    value = encode(ANSWER).removesuffix(b"}") + b',"privileged":{"trace":[' + many + b"]}}"
    place = {"topic": "answers", "partition": 0, "offset": 7, "at": 9.0}
    record = Record(key=b"k", value=value, headers=[SIGNATURES.header(ANSWER)], **place)
    rejected = read(record, keyed=True, signatures=SIGNATURES)
    assert isinstance(rejected, Rejected)
    assert rejected.fault == "unauthorised"
    assert "and cannot be: message must have at most 1048576 bytes, got" in rejected.reason


def test_what_is_signed_by_its_annotator_is_read():
    assert received(ANSWER, [SIGNATURES.header(ANSWER)]) == ANSWER
    assert received(CANCEL, [("signature", signature(CANCEL, KEYS["eve"]))]) == CANCEL


def test_a_clock_that_is_ahead_spoils_no_signature():
    ahead = replace(ANSWER, answered_at=500.0)
    assert received(ahead, [SIGNATURES.header(ahead)]) == replace(ahead, answered_at=69.0)


@pytest.mark.parametrize("message", [ANSWER, CANCEL])
def test_each_of_several_keys_is_valid_and_the_first_one_signs(message):
    old, new, other = KEYS["ann"], b"n" * 32, KEYS["bob"]
    both = Signatures({"ann": [new, old]}.get, supervisors=["ann"])
    assert both.header(ANSWER) == ("signature", signature(ANSWER, new))
    flaws = [both.flaw(message, [("signature", signature(message, k))]) for k in (old, new, other)]
    assert [flaw is None for flaw in flaws] == [True, True, False]


def test_where_only_some_keys_are_known_the_answers_of_others_are_read():
    some = Signatures({"ann": [KEYS["ann"]]}.get, knows_all=False)
    assert some.flaw(replace(ANSWER, annotator="bob"), []) is None
    assert some.flaw(CANCEL, []) is None
    assert some.flaw(ANSWER, []) is not None


def test_records_of_answers_are_signed_and_of_nothing_else():
    outbound = Outbound("/streamgp/page", keyed=True, signatures=SIGNATURES)
    assert dict(outbound.message(ANSWER, 0).headers)["signature"] == signature(ANSWER, KEYS["ann"])
    assert "signature" not in dict(outbound.message(CANCEL, 0).headers)
    with pytest.raises(RefusedError, match="there is no key of annotator 'joe' to sign with"):
        outbound.message(replace(ANSWER, annotator="joe"), 0)
