import errno
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from connectors.storage import snapshots
from connectors.storage.snapshots import (
    StateDirectory,
    StateError,
    check_writable,
    locked,
    read_snapshot,
    write_snapshot,
)
from tests.helpers.scripts import run_script


@pytest.fixture
def failing(monkeypatch):
    """Make one function of the system fail with an error, the first time or at a later call."""

    def fail(name, number, at_call=1):
        original = getattr(os, name)
        calls = []

        def call(*arguments, **options):
            calls.append(arguments)
            if len(calls) == at_call:
                raise OSError(number, os.strerror(number))
            return original(*arguments, **options)

        monkeypatch.setattr(snapshots.os, name, call)

    return fail


def test_what_was_written_is_read(tmp_path):
    path = tmp_path / "loop"
    assert read_snapshot(path) is None
    for data in (b"old", b"", bytes(range(256)) * 40_000):
        write_snapshot(path, data)
        assert read_snapshot(str(path)) == data
    assert os.listdir(tmp_path) == ["loop"]


def test_a_snapshot_is_readable_by_its_owner_alone(tmp_path):
    path = tmp_path / "loop"
    path.write_bytes(b"old")
    path.chmod(0o644)
    write_snapshot(path, b"new")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_file_for_others_is_as_open_as_the_umask_lets_it_be(tmp_path):
    path = tmp_path / "summary"
    umask = os.umask(0o027)
    try:
        for data in (b"old", b"new"):
            write_snapshot(path, data, mode=0o666)
            assert stat.S_IMODE(path.stat().st_mode) == 0o640
    finally:
        os.umask(umask)


def test_a_link_is_replaced_and_what_it_points_to_is_kept(tmp_path):
    (tmp_path / "elsewhere").write_bytes(b"old")
    path = tmp_path / "loop"
    path.symlink_to(tmp_path / "elsewhere")
    write_snapshot(path, b"new")
    assert (tmp_path / "elsewhere").read_bytes() == b"old"
    assert path.read_bytes() == b"new"


def test_the_next_write_removes_what_crashes_left_behind_and_nothing_else(tmp_path):
    kept = {"loop.part", ".loop.part", ".loop2.0123456789abcdef.part", ".loop.2.part"}
    for name in {".loop.0123456789abcdef.part", ".loop.fedcba9876543210.part", *kept}:
        (tmp_path / name).write_bytes(b"half")
    write_snapshot(tmp_path / "loop", b"new")
    assert set(os.listdir(tmp_path)) == {"loop", *kept}


def test_bytes_are_on_the_disk_before_the_name_and_the_name_before_the_return(
    tmp_path, monkeypatch
):
    steps = []

    def recorded(name):
        original = getattr(os, name)

        def call(target, *arguments, **options):
            is_directory = name == "fsync" and stat.S_ISDIR(os.fstat(target).st_mode)
            steps.append(f"{name} directory" if is_directory else name)
            return original(target, *arguments, **options)

        return call

    for name in ("write", "fsync", "replace"):
        monkeypatch.setattr(snapshots.os, name, recorded(name))
    write_snapshot(tmp_path / "loop", b"new")
    assert steps == ["write", "fsync", "replace", "fsync directory"]


def test_a_write_that_takes_a_few_bytes_at_a_time_is_continued(tmp_path, monkeypatch):
    original = os.write
    monkeypatch.setattr(snapshots.os, "write", lambda file, data: original(file, data[:7]))
    write_snapshot(tmp_path / "loop", bytes(range(100)))
    assert read_snapshot(tmp_path / "loop") == bytes(range(100))


@pytest.mark.parametrize(
    ("name", "number", "match"),
    [
        ("open", errno.EACCES, "Permission denied; make it accessible, or name another place"),
        ("open", errno.EROFS, "Read-only file system; name a place that is writable"),
        ("write", errno.ENOSPC, "No space left on device; free some space"),
        ("write", errno.EDQUOT, "quota exceeded; free some space"),
        ("fsync", errno.ENOSPC, "No space left on device; free some space"),
        ("fsync", errno.EIO, "Input/output error; name another place"),
        ("replace", errno.EPERM, "Operation not permitted; make it accessible"),
    ],
)
def test_a_failed_write_says_why_and_keeps_the_old_file_alone(
    tmp_path, failing, name, number, match
):
    path = tmp_path / "loop"
    write_snapshot(path, b"old")
    failing(name, number)
    with pytest.raises(StateError, match=f"^cannot write .*loop: .*{match}"):
        write_snapshot(path, b"new")
    assert os.listdir(tmp_path) == ["loop"]
    assert read_snapshot(path) == b"old"
    write_snapshot(path, b"newer")
    assert read_snapshot(path) == b"newer"


def test_a_directory_that_cannot_be_forced_to_the_disk_is_an_error(tmp_path, failing):
    failing("fsync", errno.EIO, at_call=2)
    with pytest.raises(StateError, match="Input/output error"):
        write_snapshot(tmp_path / "loop", b"new")


def test_a_file_system_that_knows_no_sync_of_directories_is_enough(tmp_path, failing):
    failing("fsync", errno.EINVAL, at_call=2)
    write_snapshot(tmp_path / "loop", b"new")
    assert read_snapshot(tmp_path / "loop") == b"new"


def test_places_where_nothing_can_be_written_are_refused_in_words(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "directory").mkdir()
    with pytest.raises(StateError, match="No such file or directory; create its directory"):
        write_snapshot(tmp_path / "none" / "loop", b"new")
    with pytest.raises(StateError, match="file/loop: Not a directory; name another place"):
        write_snapshot(tmp_path / "file" / "loop", b"new")
    with pytest.raises(StateError, match=r"cannot write .*directory: Is a directory"):
        write_snapshot(tmp_path / "directory", b"new")
    with pytest.raises(StateError, match=r"cannot read .*directory: Is a directory"):
        read_snapshot(tmp_path / "directory")
    assert sorted(os.listdir(tmp_path)) == ["directory", "file"]


def test_the_limit_on_the_size_of_files_keeps_the_old_file(tmp_path):
    write_snapshot(tmp_path / "loop", b"old")
    script = """
import resource, sys
from connectors.storage.snapshots import StateError, write_snapshot
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    write_snapshot(sys.argv[1], bytes(200_000))
except StateError as error:
    print(error)
"""
    said = run_script(script, tmp_path / "loop")
    assert said.endswith("loop: File too large; raise the limit on the size of files\n")
    assert os.listdir(tmp_path) == ["loop"]
    assert read_snapshot(tmp_path / "loop") == b"old"


# Each child dies before the next line of the module that it would run, without cleaning up.
CRASH_AT_EVERY_LINE = """
import os, sys
from pathlib import Path
from connectors.storage import snapshots
path = Path(sys.argv[1], "loop")

def write_until(line):
    pid = os.fork()
    if pid == 0:
        n_lines = 0
        def trace(frame, event, argument):
            global n_lines
            if frame.f_code.co_filename != snapshots.__file__:
                return None
            n_lines += event == "line"
            if n_lines > line:
                os._exit(1)
            return trace
        globals()["n_lines"] = 0
        sys.settrace(trace)
        snapshots.write_snapshot(path, b"new" * 1000)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0

found, ended = [], False
while not ended:
    snapshots.write_snapshot(path, b"old")
    ended = write_until(len(found))
    found.append(snapshots.read_snapshot(path))
    n_files = len(os.listdir(path.parent))
    assert n_files <= 2, os.listdir(path.parent)
    snapshots.write_snapshot(path, b"next")
    assert os.listdir(path.parent) == ["loop"]
whole = [{b"old": "old", b"new" * 1000: "new"}[data] for data in found]
n_old = whole.count("old")
assert whole == ["old"] * n_old + ["new"] * (len(whole) - n_old)
print(n_old, len(whole))
"""


def test_a_crash_before_any_line_leaves_the_old_file_or_the_new_one(tmp_path):
    n_old, n_crashes = map(int, run_script(CRASH_AT_EVERY_LINE, tmp_path).split())
    assert 15 < n_old < n_crashes - 2


KILL_AT_ANY_TIME = """
import os, random, signal, sys, time
from pathlib import Path
from connectors.storage.snapshots import read_snapshot, write_snapshot
path = Path(sys.argv[1], "loop")
rng = random.Random(1)

def data(n):
    return bytes([n % 251]) * (1_000 + 997 * (n % 251))

n, progress, interrupted = 0, 0, 0
write_snapshot(path, data(0))
for _ in range(int(sys.argv[2])):
    pid = os.fork()
    if pid == 0:
        while True:
            n += 1
            write_snapshot(path, data(n))
    time.sleep(rng.uniform(0.0, 0.01))
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    found = read_snapshot(path)
    kind = found[0]
    assert found == data(kind), (kind, len(found))
    progress += (kind - n) % 251
    interrupted += len(os.listdir(path.parent)) > 1
    n = kind
assert len(os.listdir(path.parent)) <= 2
write_snapshot(path, b"end")
assert os.listdir(path.parent) == ["loop"]
print(progress, interrupted)
"""


def test_a_writer_killed_at_any_time_leaves_a_whole_file(tmp_path):
    n_written, n_interrupted = map(int, run_script(KILL_AT_ANY_TIME, tmp_path, 200).split())
    assert n_written + n_interrupted > 50


TWO_WRITERS = """
import os, sys
from pathlib import Path
from connectors.storage.snapshots import StateError, read_snapshot, write_snapshot
path = Path(sys.argv[1], "loop")
children = []
write_snapshot(path, b"a" * 100_000)
for letter in (b"a", b"b"):
    if (pid := os.fork()) == 0:
        for _ in range(100):
            try:
                write_snapshot(path, letter * 100_000)
            except StateError:
                pass
            assert read_snapshot(path) in (b"a" * 100_000, b"b" * 100_000)
        os._exit(0)
    children.append(pid)
assert [os.waitpid(pid, 0)[1] for pid in children] == [0, 0]
"""


def test_two_writers_at_once_never_mix_their_bytes(tmp_path):
    run_script(TWO_WRITERS, tmp_path)


def test_a_state_directory_is_created_for_its_owner_and_lists_its_files(tmp_path):
    place = tmp_path / "var" / "state"
    with StateDirectory(place) as state:
        assert state.names() == []
        state.write("loop", b"1")
        state.write("counts", b"2")
        (place / ".hidden").write_bytes(b"")
        (place / "sub").mkdir()
        assert state.names() == ["counts", "loop"]
        assert (state.read("loop"), state.read("none")) == (b"1", None)
        assert state.file("loop") == place / "loop"
    assert stat.S_IMODE(place.stat().st_mode) == 0o700
    with StateDirectory(str(place)) as state:
        assert state.read("loop") == b"1"


@pytest.mark.parametrize("name", ["lock", "", ".", "..", "a/b", "/a", ".loop", "../loop"])
def test_files_of_a_state_directory_have_plain_names(tmp_path, name):
    with (
        StateDirectory(tmp_path) as state,
        pytest.raises(ValueError, match="name must be a plain file name other than 'lock', got"),
    ):
        state.read(name)


def test_a_closed_state_directory_says_so(tmp_path):
    state = StateDirectory(tmp_path)
    state.close()
    state.close()
    with pytest.raises(ValueError, match=r"^state directory is closed; open it again$"):
        state.write("loop", b"1")


def test_a_state_directory_in_use_names_the_process(tmp_path):
    (tmp_path / "lock").write_bytes(b"99999999999999\n")
    with StateDirectory(tmp_path):
        match = rf"^{tmp_path} is in use by process {os.getpid()}; stop it, or name another direc"
        with pytest.raises(StateError, match=match):
            StateDirectory(tmp_path)
    StateDirectory(tmp_path).close()


HOLDER = """
import sys
from connectors.storage.snapshots import StateDirectory
state = StateDirectory(sys.argv[1])
print("ready", flush=True)
sys.stdin.read()
"""


def test_a_link_in_place_of_a_lock_is_refused_and_what_it_points_to_is_kept(tmp_path):
    precious = tmp_path / "precious"
    precious.write_bytes(b"of another program")
    (tmp_path / "lock").symlink_to(precious)
    with pytest.raises(StateError, match="symbolic links; remove the link, or name another place"):
        StateDirectory(tmp_path)
    (tmp_path / ".invites.json.lock").symlink_to(precious)
    with (
        pytest.raises(StateError, match="symbolic links; remove the link, or name another place"),
        locked(tmp_path / "invites.json"),
    ):
        pass
    assert precious.read_bytes() == b"of another program"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has other locks")
def test_a_file_system_without_locks_is_refused_in_words(tmp_path, monkeypatch):
    def refuse(*_arguments):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(snapshots.fcntl, "flock", refuse)
    with (
        pytest.raises(StateError, match=r"^cannot lock .*invites.json: No locks available; name"),
        locked(tmp_path / "invites.json"),
    ):
        pytest.fail("it was not locked")


def test_the_lock_of_a_state_directory_ends_with_its_process(tmp_path):
    command = [sys.executable, "-c", HOLDER, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout.readline() == b"ready\n"
        with pytest.raises(StateError, match=f"in use by process {holder.pid}; stop it"):
            StateDirectory(tmp_path)
        holder.kill()
        holder.wait()
        StateDirectory(tmp_path).close()


def test_a_place_that_cannot_be_a_state_directory_is_refused_in_words(tmp_path, monkeypatch):
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StateError, match=r"^state must be kept in a directory, but .*file is a f"):
        StateDirectory(tmp_path / "file")
    with pytest.raises(StateError, match=r"in a directory, but .*file is a file; name another p"):
        StateDirectory(tmp_path / "file" / "sub")
    (tmp_path / "link").symlink_to("nowhere")
    with pytest.raises(StateError, match=r"but .*link is a link that leads nowhere; name another"):
        StateDirectory(tmp_path / "link")

    def refuse(*_):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(snapshots.os, "mkdir", refuse)
    with pytest.raises(StateError, match=r"cannot keep state in .*new: No locks available; name"):
        StateDirectory(tmp_path / "new")
    monkeypatch.setattr(snapshots.fcntl, "flock", refuse)
    with pytest.raises(StateError, match=r"cannot lock .*: No locks available; name another place"):
        StateDirectory(tmp_path)


def test_a_drive_that_is_not_there_is_refused_in_words(monkeypatch):
    def mkdir(path, _mode):
        raise FileNotFoundError(errno.ENOENT, "not there", str(path))

    monkeypatch.setattr(snapshots.Path, "is_dir", lambda _path: False)
    monkeypatch.setattr(snapshots.os, "mkdir", mkdir)
    with pytest.raises(
        StateError, match=r"^cannot keep state in /state/new: not there; create its"
    ):
        StateDirectory("/state/new")
    monkeypatch.setattr(snapshots.os.path, "lexists", lambda _path: False)
    with pytest.raises(StateError, match=r"^cannot write /state/new: there is no directory /$"):
        check_writable(Path("/state/new"), makes_directory=True)


# --- checked before the work


def test_a_file_that_can_be_written_passes_and_is_not_made(tmp_path):
    (tmp_path / "old").write_text("old")
    (tmp_path / "link").symlink_to("target")
    for name in ("new", "old", "link", "/dev/null"):
        check_writable(tmp_path / name)
    check_writable(tmp_path / "a" / "b" / "new", makes_directory=True)
    assert sorted(os.listdir(tmp_path)) == ["link", "old"]
    assert (tmp_path / "old").read_text() == "old"


@pytest.mark.parametrize(
    ("name", "makes", "words"),
    [
        ("loop", True, "Too many levels of symbolic links; remove the link"),
        ("loop/new", True, "Too many levels of symbolic links; remove the link"),
        ("file/new", True, "file is not a directory"),
        ("file/a/new", True, "file is not a directory"),
        ("file/new", False, "file is not a directory"),
        ("a/new", False, "there is no directory "),
        ("astray", True, "there is no directory "),
        ("astray/new", True, "astray is not a directory"),
        ("x" * 300, True, "File name too long; choose a shorter one"),
    ],
)
def test_a_file_that_cannot_be_written_is_refused_before_the_work(tmp_path, name, makes, words):
    (tmp_path / "file").touch()
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "astray").symlink_to("nowhere/file")
    with pytest.raises(StateError, match=f"^cannot write .*{words}"):
        check_writable(tmp_path / name, makes_directory=makes)
    assert sorted(os.listdir(tmp_path)) == ["astray", "file", "loop"]


def test_what_others_own_is_refused_before_the_work(tmp_path, monkeypatch):
    path = tmp_path / "page.html"
    monkeypatch.setattr(os, "access", lambda _path, _mode: False)
    with pytest.raises(StateError, match=f"{tmp_path} is not writable$"):
        check_writable(path)
    path.touch()
    with pytest.raises(StateError, match=f"{path} is not writable$"):
        check_writable(path)


@pytest.mark.timeout(60)
def test_a_pipe_or_a_device_in_the_place_of_a_file_is_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", "/dev/zero"):
        with pytest.raises(StateError, match=f"cannot read {path}: it is no file; remove it"):
            read_snapshot(path)
