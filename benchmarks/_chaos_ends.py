"""Whether every question under chaos has exactly one end: an answer, a cancellation, the expiry."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from benchmarks._chaos_lines import Name
from benchmarks._chaos_talks import Asked, Talk

GRACE_S = 5.0
"""How long after its expiry a question may still be open."""


def wrong_ends(
    asked: Mapping[Name, Asked],
    talks: Mapping[Name, Talk],
    written_at: Mapping[Name, Sequence[float]],
    stopped_at: float,
) -> Iterator[tuple[str, bool]]:
    """Find questions without exactly one end, and whether they are open within their time.

    Parameters
    ----------
    asked
        What the topic of requests says, by event.
    talks
        What must have come of the answers, by event.
    written_at
        When lines of the consensus log were written, by event.
    stopped_at
        When the workers were told to stop.

    Examples
    --------
    >>> asked = Asked()
    >>> asked.ask("e1/label", 60.0)
    >>> list(wrong_ends({("ann", "e1"): asked}, {}, {}, stopped_at=50.0))
    [('ann: e1/label', True)]
    >>> asked.expire("e1/label", at=61.0)
    >>> list(wrong_ends({("ann", "e1"): asked}, {}, {}, stopped_at=70.0))
    []

    """
    for name, of_event in asked.items():
        talk = talks.get(name) or Talk(name[1], None, of_event)
        moments = written_at.get(name, ())
        if of_event.n_twice:
            yield f"{name} was asked twice", False
        for request_id in {*of_event.expires_at, *of_event.expired, *of_event.cancelled}:
            was_asked = request_id in of_event.expires_at
            n_ends = of_event.expired[request_id] + talk.ended[request_id]
            is_told = of_event.cancelled[request_id] == talk.cancelled[request_id]
            is_over = _is_over(of_event, request_id, moments)
            if was_asked and n_ends + is_over == 1 and is_told:
                continue
            expires_at = of_event.expires_at.get(request_id)
            in_time = expires_at is None or expires_at > stopped_at - GRACE_S
            yield f"{name[0]}: {request_id}", was_asked and n_ends == 0 and is_told and in_time


def _is_over(asked: Asked, request_id: str, moments: Sequence[float]) -> bool:
    """Whether something came of a question before it expired: then it has ended before."""
    expired_at = asked.expired_at.get(request_id)
    if expired_at is None:
        return False
    since = asked.asked_at.get(request_id, 0.0)
    if request_id.endswith("/label"):
        moments = [*moments, *(at for r, at in asked.asked_at.items() if r != request_id)]
    return any(since < at < expired_at for at in moments)
