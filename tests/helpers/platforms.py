"""Windows and macOS as streamgp sees them, emulated on Linux: `pretend("win32")`.

Only the modules of streamgp and its connectors see the other platform: what it lacks is not there,
and what behaves differently fails here. Other packages, which run on these platforms as they are,
see this machine. A file system is emulated for all of them.

"""

from __future__ import annotations

import asyncio
import builtins
import errno
import fcntl
import importlib.abc
import importlib.machinery
import os
import re
import select
import signal
import socket
import stat
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from math import floor
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

_PACKAGES = {"streamgp", "connectors"}
_NOT_ON_WINDOWS = """
os.chown os.confstr os.fchdir os.fchmod os.fchown os.fork os.forkpty os.getegid os.geteuid os.getgid
os.getloadavg os.getpgid os.getuid os.initgroups os.killpg os.lchown os.mkfifo os.mknod os.nice
os.openpty os.pathconf os.pread os.pwrite os.sched_getaffinity os.setsid os.statvfs os.sync
os.sysconf os.uname os.wait os.WNOHANG os.O_CLOEXEC os.O_DIRECTORY os.O_DSYNC os.O_NOCTTY
os.O_NOFOLLOW os.O_NONBLOCK os.O_SYNC select.epoll select.poll signal.SIGALRM signal.SIGCHLD
signal.SIGCONT signal.SIGHUP signal.SIGKILL signal.SIGPIPE signal.SIGQUIT signal.SIGSTOP
signal.SIGTSTP signal.SIGUSR1 signal.SIGUSR2 signal.alarm signal.pause signal.pthread_kill
signal.pthread_sigmask signal.setitimer signal.sigwait socket.AF_UNIX socket.SO_REUSEADDR
socket.SO_REUSEPORT socket.socketpair time.tzset
"""
_NOT_ON_MACOS = """
os.O_DIRECT os.O_TMPFILE os.memfd_create os.pipe2 os.posix_fallocate os.sched_getaffinity
select.epoll
"""
_MODULES_NOT_ON_WINDOWS = {"fcntl", "grp", "pty", "pwd", "readline", "resource", "termios", "tty"}
_SIGNALS_OF_WINDOWS = (signal.SIGABRT, signal.SIGFPE, signal.SIGILL, signal.SIGINT, signal.SIGSEGV,
                       signal.SIGTERM, signal.SIGTTIN)  # fmt: skip
_RESERVED = re.compile(
    r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?|.*[<>:\"|?*\\\x00-\x1f].*|.*[. ]", re.I
)
_BINARY = 1 << 29
_LK_NBLCK = 2


def pretend(platform: str) -> None:
    """Let modules of streamgp that are imported from now on see another platform."""
    assert not _PACKAGES & sys.modules.keys()
    if platform == "win32":
        _Importer.modules, _Importer.missing = _windows(), _MODULES_NOT_ON_WINDOWS
    else:
        _Importer.modules, _Importer.missing = _macos(), {"msvcrt"}
    sys.meta_path.insert(0, _Finder())
    sys.addaudithook(_on_windows if platform == "win32" else _on_macos)
    if platform == "win32":
        for stream in (sys.stdout, sys.stderr):
            stream.reconfigure(  # type: ignore[union-attr]
                encoding="cp1252", errors="strict", newline="\r\n"
            )
        asyncio.SelectorEventLoop.add_signal_handler = _not_implemented  # type: ignore[method-assign]


# --- Modules.


class _Importer:
    """Imports of a module of streamgp."""

    modules: ClassVar[Mapping[str, ModuleType]]
    missing: ClassVar[set[str]]

    @classmethod
    def load(
        cls,
        name: str,
        globals: Mapping[str, Any] | None = None,
        locals: Mapping[str, Any] | None = None,
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> ModuleType:
        if name in cls.missing:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return cls.modules.get(name) or builtins.__import__(
            name, globals, locals, fromlist or (), level
        )


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        if name.partition(".")[0] not in _PACKAGES:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None and isinstance(spec.loader, importlib.machinery.SourceFileLoader):
            spec.loader = _Loader(spec.loader.name, spec.loader.path)
        return spec


class _Loader(importlib.machinery.SourceFileLoader):
    def exec_module(self, module: ModuleType) -> None:
        module.__dict__["__builtins__"] = {**vars(builtins), "__import__": _Importer.load}
        super().exec_module(module)


class _Sys(ModuleType):
    """`sys`, but for the name of the platform."""

    def __init__(self, platform: str) -> None:
        super().__init__("sys")
        self.__dict__["platform"] = platform

    def __getattr__(self, name: str) -> Any:
        return getattr(sys, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(sys, name, value)


def _without(names: str, name: str, **instead: Any) -> ModuleType:
    """Return a module without some of its names, and with others."""
    module = ModuleType(name)
    vars(module).update(vars(importlib.import_module(name)))
    for gone in names.split():
        if gone.startswith(f"{name}."):
            vars(module).pop(gone.removeprefix(f"{name}."), None)
    vars(module).update(instead)
    return module


def _macos() -> dict[str, ModuleType]:
    names = _NOT_ON_MACOS
    return {
        "sys": _Sys("darwin"),
        "os": _without(names, "os"),
        "select": _without(names, "select"),
        "fcntl": _without(names, "fcntl", F_FULLFSYNC=fcntl.F_GETFD),
    }


def _windows() -> dict[str, ModuleType]:
    names, msvcrt = _NOT_ON_WINDOWS, ModuleType("msvcrt")
    vars(msvcrt).update(LK_NBLCK=_LK_NBLCK, locking=_locking)
    return {
        "sys": _Sys("win32"),
        "os": _without(
            names,
            "os",
            O_BINARY=_BINARY,
            open=_open,
            write=_write,
            fsync=_fsync,
            execv=_execv,
            kill=_not_implemented,
        ),
        "msvcrt": msvcrt,
        "select": _without(names, "select", select=_select),
        "signal": _without(names, "signal", SIGBREAK=signal.SIGTTIN, signal=_signal),
        "socket": _without(names, "socket", SO_EXCLUSIVEADDRUSE=socket.SO_KEEPALIVE),
        "time": _without(names, "time", time=_coarse(time.time), monotonic=_coarse(time.monotonic)),
    }


# --- What Windows does differently.

# Descriptors opened by `os.open` that replace newlines when they are written to.
_as_text: set[int] = set()


def _locking(descriptor: int, mode: int, n_bytes: int) -> None:
    assert (mode, n_bytes) == (_LK_NBLCK, 1)
    # Nobody could read what stands there.
    assert os.lseek(descriptor, 0, os.SEEK_CUR) > os.fstat(descriptor).st_size
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise PermissionError(errno.EACCES, "Permission denied") from None


def _open(path: Any, flags: int, mode: int = 0o777) -> int:
    if os.path.isdir(path):
        raise PermissionError(errno.EACCES, "Permission denied", os.fspath(path))
    descriptor = os.open(path, flags & ~_BINARY, mode)
    (_as_text.discard if flags & _BINARY else _as_text.add)(descriptor)
    return descriptor


def _write(descriptor: int, data: Any) -> int:
    if descriptor in _as_text:
        data = bytes(data).replace(b"\n", b"\r\n")
    return os.write(descriptor, data)


def _fsync(descriptor: int) -> None:
    if fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
        raise OSError(errno.EBADF, "Bad file descriptor")
    os.fsync(descriptor)


def _execv(path: str, arguments: Sequence[str]) -> None:  # noqa: ARG001
    os._exit(0)  # another process goes on beside the caller


def _coarse(clock: Callable[[], float]) -> Callable[[], float]:
    """Return a clock that ticks 64 times a second."""
    return lambda: floor(64.0 * clock()) / 64.0


def _select(*waited_for: Any) -> Any:
    for descriptor in (each for group in waited_for[:3] for each in group):
        if not stat.S_ISSOCK(os.fstat(descriptor).st_mode):
            raise OSError(
                errno.ENOTSOCK, "An operation was attempted on something that is not a socket"
            )
    return select.select(*waited_for)


def _signal(number: int, handler: Any) -> Any:
    if number not in _SIGNALS_OF_WINDOWS:
        raise ValueError("signal number out of range")
    return signal.signal(number, handler)


def _not_implemented(*_arguments: Any) -> Any:
    raise NotImplementedError


# --- File systems.


def _on_windows(event: str, arguments: tuple[Any, ...]) -> None:
    """Refuse names that Windows does not have, and to move or remove what is open."""
    if event in ("open", "os.mkdir") and isinstance(arguments[0], str):
        path = Path(arguments[0])
        if path.is_relative_to(Path.cwd()) or not path.is_absolute():
            for part in path.absolute().relative_to(Path.cwd()).parts:
                if _RESERVED.fullmatch(part):
                    raise OSError(errno.EINVAL, "Invalid argument", str(path))
        _check_case(path, event)
    elif event in ("os.rename", "os.remove"):
        for path in arguments[: 1 + (event == "os.rename")]:
            if _is_open(os.path.abspath(os.fsdecode(path))):
                raise PermissionError(errno.EACCES, "used by another process", os.fsdecode(path))


def _on_macos(event: str, arguments: tuple[Any, ...]) -> None:
    if event in ("open", "os.mkdir") and isinstance(arguments[0], str):
        # The only file there that streamgp reads; other packages know where they run.
        if arguments[0] == "/proc/self/mountinfo":
            raise FileNotFoundError(errno.ENOENT, "No such file or directory", arguments[0])
        _check_case(Path(arguments[0]), event)


def _check_case(path: Path, event: str) -> None:
    """Refuse a new file beside one whose name differs in case only."""
    if path.absolute().is_relative_to(Path.cwd()) and path.parent.is_dir():
        other = {name for name in os.listdir(path.parent) if name.lower() == path.name.lower()}
        assert other <= {path.name}, f"{event}: {path} and {other} are one file elsewhere"


def _is_open(path: str) -> bool:
    """Return whether this process has a file open, or one in a directory."""
    for descriptor in os.listdir("/proc/self/fd"):
        try:
            found = os.readlink(f"/proc/self/fd/{descriptor}")
        except OSError:
            continue
        if found == path or found.startswith(f"{path}/"):
            return True
    return False
