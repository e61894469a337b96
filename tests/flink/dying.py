"""The command line of streamgp, which kills itself and all of its Flink in the midst of a move.

The environment variable `DIES_AFTER` names a method of `Move`: it dies when that returns, or, for
`draining`, soon after a savepoint is asked for, and for `submitted`, when a cluster elsewhere has
the job that works.

"""

import os
import signal
import sys
from functools import wraps
from threading import Timer

from streamgp.apps.flink.moving import Move
from streamgp.cli.main import main

TAKING_OVER = ("_wait_until_read", "_savepoint", "mark")
HANDING_BACK = (
    *("erase_state", "_wait_until_read", "draining", "_savepoint"),
    *("_wait_for_end", "_put_workers", "_sign"),
)
"""Moments of each way, in their order: what was begun goes on behind the moment before."""
CANCELLED = "_wait_until_read, cancelled"
TAKING_OVER_ELSEWHERE = (*TAKING_OVER, "new_working_job", "submitted")
HANDING_BACK_ELSEWHERE = (HANDING_BACK[0], CANCELLED, *HANDING_BACK[1:])
"""The same where jobs run on a cluster elsewhere; at one of them the job is cancelled, too."""


def die():
    os.killpg(0, signal.SIGKILL)


def deadly(method):
    @wraps(method)
    def call(*args, **options):
        method(*args, **options)
        die()

    return call


def slow(method):
    @wraps(method)
    def call(*args, **options):
        Timer(0.5, die).start()
        return method(*args, **options)

    return call


if __name__ == "__main__":
    moment = os.environ["DIES_AFTER"].partition(",")[0]
    if moment == "draining":
        Move._savepoint = slow(Move._savepoint)
    elif moment == "submitted":
        Move.has_taken_over = lambda _: die()
    else:
        setattr(Move, moment, deadly(getattr(Move, moment)))
    sys.exit(main())
