"""The command line of streamgp, which kills itself and its Flink processes in the middle of a move.

The environment variable `DIES_AFTER` names a method of `Move`: the process dies when this returns
or, for `draining`, soon after a savepoint is requested, and for `submitted`, when a cluster
elsewhere has the working job.

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
"""Moments of each direction, in order: a command that is repeated resumes after the last one."""
CANCELLED = "_wait_until_read, cancelled"
TAKING_OVER_ELSEWHERE = (*TAKING_OVER, "new_working_job", "submitted")
HANDING_BACK_ELSEWHERE = (HANDING_BACK[0], CANCELLED, *HANDING_BACK[1:])
"""The same for jobs on a cluster elsewhere; at one of them the job is cancelled as well."""


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
