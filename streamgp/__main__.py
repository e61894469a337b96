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
        fix_hashes()
    try:
        # Only now: it takes longer than all before it, which may be done twice.
        from streamgp.cli.main import main as run
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
    run()


def fix_hashes() -> None:
    """Start over with hashes that are the same in every process, unless the user chose some.

    Some of River's learners (nearest neighbours, the Mondrian forest) add up over sets of feature
    names, so that their last digits, and in the end their decisions, follow the order of hashes.
    Python takes the seed of hashes only when it starts.
    """
    if "PYTHONHASHSEED" not in os.environ:
        os.environ["PYTHONHASHSEED"] = "0"
        command = [sys.executable, *sys.orig_argv[1:]]
        if sys.platform == "win32":
            _run(command)
        else:
            try:
                os.execv(sys.executable, command)
            except OSError as error:
                print(
                    f"Error: cannot start {sys.executable!r} once more: {error.strerror}; "
                    "set PYTHONHASHSEED=0, then it need not be",
                    file=sys.stderr,
                )
                sys.exit(2)


def _run(command: list[str]) -> NoReturn:
    """Run a command as if this process became it: on Windows `exec` ends the process at once."""
    import subprocess

    process = subprocess.Popen(command)
    # The console sends Ctrl-C and Ctrl-Break to both, and the command says how it ends.
    for name in ("SIGINT", "SIGBREAK"):
        signal.signal(getattr(signal, name), signal.SIG_IGN)
    sys.exit(process.wait())


if __name__ == "__main__":
    main()
