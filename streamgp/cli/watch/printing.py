"""Records of a topic, printed as lines of JSON as they come."""

from __future__ import annotations

import select
import sys
from collections.abc import Callable
from contextlib import closing

from connectors.topics import Outgoing, TopicName, Topics
from connectors.wire.record_lines import to_line

_PATIENCE_S = 0.2


def print_records(
    topics: Topics, topic: TopicName, stop: Callable[[], bool], *, from_start: bool, once: bool
) -> None:
    """Print the records of a topic on standard output.

    Parameters
    ----------
    topics, topic
        Where they are.
    stop
        Tells whether to end.
    from_start
        Whether to begin with the first record, not with the next one.
    once
        Whether to end with the last one that was there.

    Raises
    ------
    BrokenPipeError
        If the output is not read any more.

    """
    out = sys.stdout.buffer
    with closing(topics.reader((topic,), from_end=not from_start)) as reader:
        while not stop() and not (once and reader.caught_up):
            for record in reader.poll(_PATIENCE_S):
                outgoing = Outgoing(
                    topic=topic, key=record.key, value=record.value, headers=record.headers
                )
                out.write(to_line(outgoing, record.at) + b"\n")
            out.flush()
            _check_read()


def _check_read() -> None:
    """Notice a pipe that is not read any more though there is nothing to write."""
    try:
        descriptor = sys.stdout.fileno()
    except OSError:  # no file at all
        return
    poll = select.poll()
    poll.register(descriptor, 0)
    if any(events & select.POLLERR for _, events in poll.poll(0)):
        raise BrokenPipeError
