"""Signatures of answers: a key that only the annotator shares proves who has answered.

A signature is the HMAC-SHA256 (RFC 2104) of the answer as `codec.encode` writes it, with the key of
its annotator, in the header `signature`. What the answer says, about which event and key, under
which id and when cannot be changed, and if it is sent again it is the same answer.

"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Iterable, Sequence

from connectors.topics import Headers, RefusedError
from connectors.wire.codec import encode
from streamgp.interactive.messages import Answer, Cancel

HEADER = "signature"
_SCHEME = b"hmac-sha256="


def signature(message: Answer | Cancel, key: bytes) -> bytes:
    """Return the value of the header `signature`.

    Examples
    --------
    >>> answer = Answer(answer_id="a1", event_id="e1", y="hall", annotator="ann", answered_at=9.0)
    >>> signature(answer, b"0123456789abcdef").decode()[:24]
    'hmac-sha256=...'

    """
    return _SCHEME + hmac.digest(key, encode(message), "sha256").hex().encode()


class Signatures:
    """Signs answers, and checks the signatures of those that come.

    Parameters
    ----------
    keys_of
        Returns the keys of an annotator, None if there are none: the first signs, each is valid.
    supervisors
        Annotators who may cancel questions; a cancellation names no annotator.
    knows_all
        Whether everyone who may answer has a key here, as in workers and the page. If not,
        answers of annotators without a key are let through.

    Examples
    --------
    >>> signatures = Signatures({"ann": [b"0123456789abcdef"]}.get)
    >>> answer = Answer(answer_id="a1", event_id="e1", y="hall", annotator="ann", answered_at=9.0)
    >>> signatures.flaw(answer, [signatures.header(answer)]) is None
    True
    >>> signatures.flaw(answer, [])
    "an answer of 'ann' must be signed, and has no header signature; sign it with the key of 'ann'"

    """

    def __init__(
        self,
        keys_of: Callable[[str], Sequence[bytes] | None],
        *,
        supervisors: Iterable[str] = (),
        knows_all: bool = True,
    ) -> None:
        self._keys_of = keys_of
        self._supervisors = tuple(supervisors)
        self._knows_all = knows_all

    def can_sign(self, annotator: str) -> bool:
        """Return whether there is a key of an annotator."""
        return bool(self._keys_of(annotator))

    def header(self, answer: Answer) -> tuple[str, bytes]:
        """Return the header that signs an answer.

        Raises
        ------
        RefusedError
            If its annotator has no key; one may have been removed while a program ran.

        """
        keys = None if answer.annotator is None else self._keys_of(answer.annotator)
        if not keys:
            raise RefusedError(
                f"there is no key of annotator {answer.annotator!r} to sign with; "
                "`streamgp invite` makes one"
            )
        return HEADER, signature(answer, keys[0])

    def flaw(self, message: Answer | Cancel, headers: Headers) -> str | None:
        """Return why a message is not proved to be its annotator's, None if it is."""
        what, who = "what cancels a question must be signed", "a supervisor"
        names: tuple[str | None, ...] = self._supervisors
        if isinstance(message, Answer):
            names, who = (message.annotator,), repr(message.annotator)
            what = f"an answer of {who} must be signed"
        keys = [key for name in names if name is not None for key in self._keys_of(name) or ()]
        if not keys:
            return f"{what}, and there is no key of {who}" if self._knows_all else None
        given = [value for name, value in headers if name == HEADER]
        if not given:
            return f"{what}, and has no header {HEADER}; sign it with the key of {who}"
        try:
            signed = [signature(message, key) for key in keys]
        except ValueError as error:
            # Numbers such as 1e15 are written longer: what could be read can be too large to write.
            return f"{what}, and cannot be: {error}"
        # In constant time: a client must not see how much of a guess was right.
        if any(hmac.compare_digest(given[0], each) for each in signed):
            return None
        return f"{what}, and this signature is not that of {who}; sign it with their key"
