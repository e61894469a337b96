"""Start of the command line: `python -m streamgp`, and the script `streamgp`."""

from __future__ import annotations

import os
import signal
import sys
from typing import NoReturn

from streamgp.cli import COMPLETE_VARIABLE


def main() -> NoReturn:
    """Run the command line, with hashes that are the same in every process."""
    # A shell that waits for what can follow a word needs no hashes, but an answer at once.
    if COMPLETE_VARIABLE not in os.environ:
        _fix_hashes()
    try:
        # Only now: it takes longer than all before it, which may be done twice.
        from streamgp.cli.main import main as run
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
    run()


def _fix_hashes() -> None:
    """Start over with hashes that are the same in every process, unless the user chose some.

    Some of River's learners (nearest neighbours, the Mondrian forest) add up over sets of feature
    names, so that their last digits, and in the end their decisions, follow the order of hashes.
    Python takes the seed of hashes only when it starts.
    """
    if "PYTHONHASHSEED" not in os.environ:
        os.environ["PYTHONHASHSEED"] = "0"
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])


if __name__ == "__main__":
    main()
