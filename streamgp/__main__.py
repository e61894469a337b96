"""Start of the command line: `python -m streamgp`, and the script `streamgp`."""

from __future__ import annotations

import os
import signal
import sys
from typing import NoReturn


def main() -> NoReturn:
    """Run the command line; say in one line which module is missing, or what hides it."""
    try:
        _main()
    except KeyboardInterrupt:  # before a command could handle it
        sys.exit(128 + signal.SIGINT)
    except Exception as error:
        found = _in_the_way(error)
        for name, file in found:
            if _tells_of(error, name, file):
                print(
                    f"Error: {file} was imported in place of the module {name!r} that streamgp "
                    f"needs ({type(error).__name__}: {' '.join(str(error).split())}); rename it, "
                    "or start streamgp in another directory",
                    file=sys.stderr,
                )
                sys.exit(2)
        if found:  # perhaps good copies, on `PYTHONPATH`, and it is our own error
            files = ", ".join(file for _, file in found)
            error.add_note(f"perhaps because of files imported in place of other modules: {files}")
        elif isinstance(error, ModuleNotFoundError) and "." not in (error.name or "."):
            print(
                f"Error: package {error.name!r} is not installed for {sys.executable}; install "
                "streamgp as its README says, and start it from there",
                file=sys.stderr,
            )
            sys.exit(2)
        raise


def _main() -> NoReturn:
    """Run the command line, with hashes that are the same in every process."""
    # The first process of a container: signals end it only if it handles them.
    if sys.platform != "win32" and os.getpid() == 1:
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, lambda number, _frame: sys.exit(128 + number))
    from streamgp.cli import COMPLETE_VARIABLE

    # A shell that waits for what can follow a word needs no hashes, but an answer at once.
    if COMPLETE_VARIABLE not in os.environ:
        fix_hashes()
    # Only now: it takes longer than all before it, which may be done twice.
    from streamgp.cli.main import main as run

    run()


def _in_the_way(error: BaseException) -> list[tuple[str, str]]:
    """Return the names of modules that were hidden when an error occurred, and the files in place.

    With `python -m` Python looks for modules in the working directory first, then in those of
    `PYTHONPATH`, and only then where modules are installed.
    """
    from importlib.machinery import PathFinder

    standard = os.path.dirname(os.__file__)
    if standard not in sys.path:
        return []
    first = sys.path.index(standard)
    files = [getattr(module, "__file__", None) for module in [*sys.modules.values()]]
    files.append(getattr(error, "filename", None))  # of a SyntaxError
    traced = error.__traceback__  # what failed to be imported is not in `sys.modules`
    while traced is not None:
        files.append(traced.tb_frame.f_code.co_filename)
        traced = traced.tb_next
    found = {}
    for file in files:
        if not isinstance(file, str):
            continue
        directory, name = os.path.split(os.path.splitext(file)[0])
        if name == "__init__":
            directory, name = os.path.split(directory)
        # Packages of a checkout, and the script `streamgp`, are meant.
        if directory in sys.path[:first] and name not in ("streamgp", "connectors"):
            meant = PathFinder.find_spec(name, sys.path[first:])
            if meant is not None and meant.origin not in (None, file):
                found[name] = file
    return [*found.items()]


def _tells_of(error: BaseException | None, name: str, file: str) -> bool:
    """Return whether an error, or its cause, says itself that a file is not the module meant."""
    if error is None:
        return False
    traced = error.__traceback__
    while traced is not None:  # it was raised while the file was imported
        code = traced.tb_frame.f_code
        if (code.co_filename, code.co_name) == (file, "<module>"):
            return True
        traced = traced.tb_next
    match error:
        case ImportError():
            tells = (error.name or "").partition(".")[0] == name
        case SyntaxError():
            tells = error.filename == file
        case AttributeError():
            tells = getattr(error.obj, "__file__", None) == file
        case _:
            tells = False
    return tells or _tells_of(error.__cause__ or error.__context__, name, file)


def fix_hashes() -> None:
    """Start over with hashes that are the same in every process, unless the user chose some.

    Some of River's learners (nearest neighbours, the Mondrian forest) add up over sets of feature
    names, so that their last digits, and in the end their decisions, follow the order of hashes.
    Python takes the seed of hashes only when it starts.
    """
    if "PYTHONHASHSEED" in os.environ:
        if sys.platform != "win32":
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        return
    os.environ["PYTHONHASHSEED"] = "0"
    command = [sys.executable, *sys.orig_argv[1:]]
    if sys.platform == "win32":
        _run(command)
    else:
        # Ctrl-C waits until then: Python answers it with a traceback while it starts.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
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
