import errno
import os
import random
import re
import shutil
import sqlite3
import stat
import threading
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
)

from connectors.storage.snapshots import StateError
from connectors.storage.sqlite import SqliteStore
from tests.helpers.laws import examples
from tests.helpers.scripts import run_script

# Where to sync costs nothing: what a killed process leaves behind is the same there.
FAST = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


@pytest.fixture
def path():
    with TemporaryDirectory(dir=FAST) as directory:
        yield Path(directory, "loops")


def raw(path):
    """Return all bytes of a store, those of its log included."""
    log = path.with_name(path.name + "-wal")
    return path.read_bytes() + (log.read_bytes() if log.exists() else b"")


def contents(store):
    return {key: store.get(key) for key in list(store.keys())}


def versions(store, key):
    return store._file.rows("SELECT COUNT(*) FROM loops WHERE key = ?", (key,))[0][0]


def test_keys_are_told_apart_exactly(path):
    keys = ["", "ann", "Ann", "ann ", "ann\0", "\0", "1", "-1", "é", "e\u0301", "\U0001f600", None]
    with SqliteStore(path) as store:
        for i, key in enumerate(keys):
            store.put(key, b"%d" % i)
        assert [store.get(key) for key in keys] == [b"%d" % i for i in range(len(keys))]
        assert list(store.keys()) == [*sorted(keys[:-1]), None]
        assert len(store) == len(keys)


@pytest.mark.parametrize("data", [b"", b"\0", bytes(range(256)) * 40_000])
def test_any_bytes_come_back(path, data):
    with SqliteStore(path) as store:
        store.put("ann", data)
        mark = store.mark()
    with SqliteStore(path) as store:
        store.reset(mark)
        assert store.get("ann") == data


def test_keys_may_be_put_and_discarded_while_they_are_listed(path):
    with SqliteStore(path) as store:
        for i in range(3000):
            store.put(str(i), b"1")
        seen = []
        for key in store.keys():  # noqa: SIM118
            seen.append(key)
            store.put(key, b"2")
            store.discard(key)
        assert sorted(seen, key=int) == [str(i) for i in range(3000)]
        assert (len(store), list(store.keys())) == (0, [])


def test_both_of_the_last_two_marks_can_be_gone_back_to_in_another_process(path):
    with SqliteStore(path) as store:
        marks = []
        for data in (b"1", b"2", b"3"):
            store.put("ann", data)
            marks.append(store.mark())
    for mark, data in [(marks[2], b"3"), (marks[1], b"2")]:
        with SqliteStore(path) as store:
            store.reset(mark)
            assert store.get("ann") == data


def test_a_store_without_reset_begins_empty_and_its_first_change_erases_the_file(path):
    with SqliteStore(path) as store:
        store.put("ann", b"what ann said")
        mark = store.mark()
    with SqliteStore(path) as store:
        assert (store.get("ann"), len(store), list(store.keys())) == (None, 0, [])
    with SqliteStore(path) as store:
        store.reset(mark)
        assert store.get("ann") == b"what ann said"
    with SqliteStore(path) as store:
        store.put("bob", b"1")
        assert contents(store) == {"bob": b"1"}
        with pytest.raises(StateError, match=r"cannot go back to .*: one of the two was"):
            store.reset(mark)
        store.mark()
        assert b"ann" not in raw(path)


def test_only_marks_of_the_last_two_moments_of_this_file_are_taken(path, tmp_path):
    with SqliteStore(tmp_path / "other") as other:
        foreign = [other.mark() for _ in range(3)]
    with SqliteStore(path) as store:
        first, second, third = (store.mark() for _ in range(3))
        store.put("ann", b"1")
        unknown = {**third, "generation": 99}
        for mark in (first, unknown, *foreign, {}, {"generation": 3}, None, "3"):
            with pytest.raises(
                StateError, match=r"go back to the snapshot .*, or delete both and start"
            ):
                store.reset(mark)
        assert store.get("ann") == b"1"
        store.reset(second)
        with pytest.raises(StateError, match="cannot go back to"):
            store.reset(third)


def test_a_mark_of_an_abandoned_future_is_not_taken_for_a_new_one(path):
    with SqliteStore(path) as store:
        past = store.mark()
        abandoned = store.mark()
        store.reset(past)
        assert store.mark() != abandoned


def test_a_key_takes_the_place_of_at_most_three_versions(path):
    with SqliteStore(path) as store:
        counts = []
        for n in range(6):
            for data in (b"a", b"b"):
                store.put("ann", b"%d" % n + data)
            counts.append(versions(store, "ann"))
            store.mark()
        assert counts == [1, 2, 3, 3, 3, 3]


def test_the_file_does_not_grow_with_the_number_of_puts(path):
    with SqliteStore(path) as store:
        sizes = []
        for _ in range(12):
            for i in range(200):
                store.put(str(i), bytes(4096))
            store.mark()
            sizes.append(len(raw(path)))
    assert sizes[-1] == sizes[4]
    assert sizes[-1] < 3 * 1.25 * sizes[0]


def test_the_log_is_empty_after_a_mark_and_gone_after_close(path):
    with SqliteStore(path) as store:
        store.put("ann", bytes(100_000))
        store.mark()
        assert sorted(p.name for p in path.parent.iterdir()) == ["loops", "loops-wal"]
        assert path.with_name("loops-wal").stat().st_size == 0
    assert [p.name for p in path.parent.iterdir()] == ["loops"]


def test_a_store_is_readable_by_its_owner_alone_also_after_it_was_written_anew(path):
    with SqliteStore(path) as store:
        for change in (lambda: store.put("ann", b"1"), lambda: store.discard("ann")):
            change()
            store.mark()
            modes = [stat.S_IMODE(p.stat().st_mode) for p in path.parent.iterdir()]
            assert modes == [0o600, 0o600]


def test_to_discard_a_key_that_is_not_there_changes_nothing(path):
    with SqliteStore(path) as store:
        store.put("ann", b"1")
        inode = path.stat().st_ino
        store.discard("bob")
        store.mark()
        assert contents(store) == {"ann": b"1"}
        assert path.stat().st_ino == inode


def test_a_file_written_anew_is_on_the_disk_before_it_has_the_name(path, monkeypatch):
    steps = []
    fsync, replace = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda file: (steps.append("fsync"), fsync(file)))
    monkeypatch.setattr(os, "replace", lambda a, b: (steps.append("replace"), replace(a, b)))
    with SqliteStore(path) as store:
        store.put("ann", b"1")
        store.discard("ann")
        store.mark()
        assert steps == ["fsync", "replace", "fsync"]


def test_a_file_that_cannot_be_written_anew_closes_the_store_and_is_kept(path, monkeypatch):
    def refuse(*_):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with SqliteStore(path) as store:
        store.put("ann", b"1")
        store.put("bob", b"2")
        mark = store.mark()
        store.discard("ann")
        with monkeypatch.context() as patch:
            patch.setattr(os, "replace", refuse)
            with pytest.raises(StateError, match=r"cannot write .*: Input/output error; name anot"):
                store.mark()
        with pytest.raises(ValueError, match="is closed; open it again"):
            store.mark()
    assert [p.name for p in path.parent.iterdir()] == ["loops"]
    with SqliteStore(path) as store:
        store.reset(mark)
        assert contents(store) == {"bob": b"2"}


@pytest.mark.parametrize("size", [50, 300, 1500, 4096, None])
def test_nothing_of_a_discarded_key_stays_in_the_file(path, size):
    """Rows move between pages all the time; every byte of them tells whose it is."""
    rng = random.Random(size)

    def found():
        return set(re.findall(r"key\d{4}", raw(path).decode("latin-1")))

    with SqliteStore(path) as store:
        for _ in range(4):
            for _ in range(300):
                name = f"key{rng.randrange(600):04d}"
                length = size or rng.choice([50, 300, 1500, 4096, 9000])
                store.put(name, (f"[said by {name}]".encode() * length)[:length])
            for name in rng.sample(list(store.keys()), 80):
                store.discard(name)
            mark = store.mark()
            assert found() == set(store.keys())
        for name in rng.sample(list(store.keys()), 80):
            store.discard(name)
        left = set(store.keys())
    assert found() == left
    with SqliteStore(path) as store:
        store.reset(mark)
        assert set(store.keys()) == left


def test_what_a_crash_put_into_the_log_is_gone_when_the_store_is_opened(path, tmp_path):
    store = SqliteStore(path)
    store.put("ann", b"1")
    mark = store.mark()
    for i in range(4000):
        store.put(f"other{i}", b"what others said" * 256)  # twice what fits into the cache
    assert b"what others said" in raw(path)
    after = tmp_path / "after" / "loops"
    after.parent.mkdir()
    for name in ("loops", "loops-wal"):
        shutil.copy(path.with_name(name), after.parent)
    store.close()
    with SqliteStore(after) as store:
        assert b"what others said" not in raw(after)
        store.reset(mark)
        assert contents(store) == {"ann": b"1"}


def test_a_store_in_use_is_refused(path):
    script = """
import sys
from connectors.storage.sqlite import SqliteStore, StateError
try:
    SqliteStore(sys.argv[1])
except StateError as error:
    print(error)
"""
    with SqliteStore(path) as store:
        said = run_script(script, path)
        assert said == f"{path} is in use by another process; stop it, or name another file\n"
        with pytest.raises(StateError, match="is in use by another process"):
            SqliteStore(path)
        assert run_script(script, path) == said
        store.put("ann", b"1")
        store.mark()
    assert run_script(script, path) == ""


def test_a_file_system_without_locks_is_named(path, monkeypatch):
    def no_locks(*_):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    with SqliteStore(path):
        monkeypatch.setattr("fcntl.lockf", no_locks)
        with pytest.raises(StateError, match=rf"^files in {path.parent} cannot be locked, as on "):
            SqliteStore(path)


def sqlite_file(path, *statements):
    with closing(sqlite3.connect(path)) as connection:
        for sql in statements:
            connection.execute(sql)
        connection.commit()


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda path: path.write_bytes(b"hello " * 1000), "is no SQLite file; name another file$"),
        (lambda path: sqlite_file(path, "CREATE TABLE t (a)"), "belongs to another program; name"),
        (lambda path: sqlite_file(path, "PRAGMA application_id = 7"), "belongs to another program"),
        (lambda path: sqlite_file(path, "PRAGMA user_version = 7"), "belongs to another program"),
    ],
)
def test_files_of_other_programs_are_refused_and_stay_as_they_are(path, make, match):
    make(path)
    before = path.read_bytes()
    with pytest.raises(StateError, match=match):
        SqliteStore(path)
    assert path.read_bytes() == before
    assert [p.name for p in path.parent.iterdir()] == ["loops"]


def test_a_store_in_which_something_runs_is_refused(path):
    SqliteStore(path).close()
    sqlite_file(path, "CREATE VIEW endless AS SELECT 1")
    with pytest.raises(StateError, match="is damaged: it has 'endless', which is no table; delete"):
        SqliteStore(path)


def test_a_store_of_another_version_is_refused_and_stays_as_it_is(path):
    SqliteStore(path).close()
    sqlite_file(path, "PRAGMA user_version = 2")
    before = path.read_bytes()
    with pytest.raises(StateError, match="has version 2, expected 1; use the version of streamgp"):
        SqliteStore(path)
    assert path.read_bytes() == before


def test_places_where_no_store_can_be_are_refused_in_words(tmp_path):
    (tmp_path / "directory").mkdir()
    with pytest.raises(
        StateError, match=r"cannot use .*: unable to open database file; make it wr"
    ):
        SqliteStore(tmp_path / "directory")
    with pytest.raises(
        StateError, match=r"cannot open .*No such file or directory; create its dir"
    ):
        SqliteStore(tmp_path / "none" / "loops")


def filled(path, n=40):
    """Fill a store and return its last mark and what is on it then."""
    rng = random.Random(1)
    with SqliteStore(path) as store:
        for _ in range(3):
            for i in range(n):
                store.put(f"key{i}", rng.randbytes(rng.choice([10, 500, 5000])))
            mark = store.mark()
        return mark, contents(store)


def test_a_file_cut_short_is_refused(path):
    filled(path)
    os.truncate(path, path.stat().st_size - 4096)
    with pytest.raises(StateError, match="is damaged: database disk image is malformed; delete it"):
        SqliteStore(path)


def test_damaged_bytes_never_come_back_as_data(path):
    mark, expected = filled(path)
    whole = path.read_bytes()
    rng = random.Random(2)
    n_refused = n_missing = 0
    for _ in range(400):
        damaged = bytearray(whole)
        start = rng.randrange(len(whole)) if rng.random() < 0.7 else rng.randrange(300)
        for i in range(start, min(start + rng.choice([1, 2, 50]), len(whole))):
            damaged[i] ^= 1 << rng.randrange(8)
        path.write_bytes(damaged)
        try:
            with SqliteStore(path) as store:
                store.reset(mark)
                found = {key: store.get(key) for key in expected}
        except StateError:
            n_refused += 1
            continue
        finally:
            path.with_name("loops-wal").unlink(missing_ok=True)
        n_missing += None in found.values()
        assert {key: data for key, data in found.items() if data is not None}.items() <= (
            expected.items()
        )
    assert n_refused > 100
    assert n_missing < 20


def test_data_that_do_not_match_their_checksum_close_the_store(path):
    with SqliteStore(path) as store:
        store.put("ann", b"what ann said")
        mark = store.mark()
    sqlite_file(path, "UPDATE loops SET data = 'what Ann said'")
    with SqliteStore(path) as store:
        store.reset(mark)
        with pytest.raises(
            StateError, match="is damaged: data of key 'ann'; delete it and start over"
        ):
            store.get("ann")
        with pytest.raises(ValueError, match="loops is closed; open it again"):
            store.get("ann")


@pytest.mark.parametrize("where", ["key = 'bob' AND generation = 2", "generation = 1"])
def test_data_of_another_row_are_not_taken_for_those_of_a_key(path, where):
    with SqliteStore(path) as store:
        store.put("ann", b"1")
        store.mark()
        for key in ("ann", "bob"):
            store.put(key, b"2")
        mark = store.mark()
    sqlite_file(
        path,
        f"UPDATE loops SET (checksum, data) = (SELECT checksum, data FROM loops WHERE {where})"
        " WHERE key = 'ann' AND generation = 2",
    )
    with SqliteStore(path) as store:
        store.reset(mark)
        assert store.get("bob") == b"2"
        with pytest.raises(StateError, match="is damaged: data of key 'ann'"):
            store.get("ann")


@pytest.mark.parametrize(
    "sql", ["DELETE FROM shelf", "UPDATE shelf SET generation = 1", "UPDATE shelf SET id = NULL"]
)
def test_a_list_of_marks_that_cannot_be_is_refused(path, sql):
    filled(path)
    sqlite_file(path, sql)
    with pytest.raises(StateError, match="is damaged: list of marks; delete it and start over"):
        SqliteStore(path)


def test_a_closed_store_says_so(path):
    store = SqliteStore(path)
    store.close()
    for use in (lambda: store.put("ann", b""), lambda: store.discard("ann"), store.mark):
        with pytest.raises(ValueError, match="loops is closed; open it again"):
            use()


def test_a_store_is_refused_in_a_process_forked_from_that_which_opened_it(path, monkeypatch):
    """Both would write to the same places of the file."""
    with closing(SqliteStore(path)) as store:
        with monkeypatch.context() as forked:
            forked.setattr(os, "getpid", lambda: 0)
            with pytest.raises(RuntimeError, match="loops was opened before this process was for"):
                store.put("ann", b"")
        store.put("ann", b"")


def test_another_thread_is_refused_and_does_no_harm(path):
    errors = []

    def use():
        try:
            store.put("ann", b"2")
        except sqlite3.ProgrammingError as error:
            errors.append(error)

    with SqliteStore(path) as store:
        store.put("ann", b"1")
        thread = threading.Thread(target=use)
        thread.start()
        thread.join()
        assert len(errors) == 1
        assert store.get("ann") == b"1"


def test_a_full_disk_closes_the_store_and_the_last_mark_holds(path):
    store = SqliteStore(path)
    store.put("ann", b"1")
    mark = store.mark()
    ((n_pages,),) = store._file.rows("PRAGMA page_count")
    store._file.rows(f"PRAGMA max_page_count = {n_pages + 3}")
    store.put("ann", b"2")
    with pytest.raises(StateError, match=r"cannot write .*: database or disk is full; free some s"):
        store.put("bob", bytes(100_000))
    with pytest.raises(ValueError, match="is closed; open it again"):
        store.mark()
    store.close()
    with SqliteStore(path) as store:
        store.reset(mark)
        assert contents(store) == {"ann": b"1"}


@pytest.mark.parametrize("n", [700, 5000])
def test_the_limit_on_the_size_of_files_keeps_the_last_mark(path, n):
    """700 pages wait in memory until the mark, 5000 do not."""
    mark, expected = filled(path)
    script = """
import resource, sys
from connectors.storage.sqlite import SqliteStore
from connectors.storage.snapshots import StateError
resource.setrlimit(resource.RLIMIT_FSIZE, (2_000_000, 2_000_000))
store = SqliteStore(sys.argv[1])
store.reset(eval(sys.argv[2]))
try:
    for i in range(int(sys.argv[3])):
        store.put(str(i), bytes(4096))
    store.mark()
except StateError as error:
    print(i, error)
store.close()
"""
    i, _, error = run_script(script, path, mark, n).partition(" ")
    assert (int(i) == n - 1) == (n == 700)
    assert error == (
        f"cannot use {path}: disk I/O error; free some space, raise the limit on the size of "
        "files, or name a file on another disk\n"
    )
    with SqliteStore(path) as store:
        store.reset(mark)
        assert contents(store) == expected


# Each child dies before the next line of these modules that it would run, without cleaning up.
CRASH_AT_EVERY_LINE = """
import os, re, sys
from pathlib import Path
from connectors.storage import snapshots, sqlite
from connectors.storage.sqlite import SqliteStore
path = Path(sys.argv[1])
traced = {module.__file__ for module in (snapshots, sqlite)}

def die_before(line):
    pid = os.fork()
    if pid == 0:
        n_lines = 0
        def trace(frame, event, argument):
            nonlocal n_lines
            if frame.f_code.co_filename not in traced:
                return None
            n_lines += event == "line"
            if n_lines > line:
                os._exit(1)
            return trace
        sys.settrace(trace)
        with SqliteStore(path) as loops:
            loops.reset(mark)
            loops.put("ann", b"said by ann, later")
            loops.put("bob", b"said by bob, later")
            loops.discard("eve")
            loops.mark()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0

with SqliteStore(path) as loops:
    for name in ("ann", "bob", "eve"):
        loops.put(name, b"said by " + name.encode())
    mark = loops.mark()
whole = path.read_bytes()

ended, n_crashes, n_discarded = False, 0, 0
while not ended:
    path.write_bytes(whole)
    Path(f"{path}-wal").unlink(missing_ok=True)
    ended = die_before(n_crashes)
    n_crashes += 1
    with SqliteStore(path) as loops:
        assert not [name for name in os.listdir(path.parent) if name.endswith("part")]
        loops.reset(mark)
        found = {key: loops.get(key) for key in loops.keys()}
        is_gone = "eve" not in found
        n_discarded += is_gone
        assert found == {n: b"said by " + n.encode() for n in ("ann", "bob", "eve")[: 3 - is_gone]}
        if is_gone:
            loops.mark()
            assert b"eve" not in path.read_bytes(), n_crashes
assert is_gone
print(n_crashes, n_discarded)
"""


def test_a_crash_before_any_line_leaves_the_last_mark_and_what_was_discarded_is_gone(path):
    n_crashes, n_discarded = map(int, run_script(CRASH_AT_EVERY_LINE, path).split())
    assert 10 < n_discarded < n_crashes - 50


keys = st.sampled_from([None, "", "key ann", "key bob", "key \0", "key eve \U0001f600"])


class ShelfAndTwin(RuleBasedStateMachine):
    """A store does what a dictionary of every moment does."""

    @initialize()
    def begin(self):
        self.root = Path(mkdtemp(dir=FAST))
        self.n_lives = 0
        self.n_puts = 0
        self.durable = []  # marks and contents as of the last commit
        self.gone = set()  # bytes of discarded keys
        self.all_marks = []
        self.said = {}  # bytes put under each key
        self.open(self.root / "0" / "loops")

    def open(self, path):
        path.parent.mkdir(exist_ok=True)
        self.path = path
        self.store = SqliteStore(path)
        self.marks = [(mark, dict(kept)) for mark, kept in self.durable]
        self.now = {}
        self.is_claimed = False

    def claim(self):
        if not self.is_claimed:
            self.is_claimed, self.marks, self.now = True, [], {}

    def commit(self):
        self.durable = [(mark, dict(kept)) for mark, kept in self.marks]

    @rule(key=keys, length=st.sampled_from([0, 1, 50, 1000, 5000]))
    def put(self, key, length):
        self.n_puts += 1
        data = b"<said %d>" % self.n_puts * length
        self.store.put(key, data)
        self.claim()
        self.now[key] = data
        self.said.setdefault(key, set()).add(b"<said %d>" % self.n_puts)

    @rule(key=keys)
    def discard(self, key):
        self.store.discard(key)
        self.claim()
        for contents in (self.now, *(kept for _, kept in self.marks)):
            contents.pop(key, None)
        self.discarded = getattr(self, "discarded", set()) | self.said.pop(key, set())

    @rule()
    def mark(self):
        mark = self.store.mark()
        assert mark not in self.all_marks
        self.claim()
        self.all_marks.append(mark)
        self.marks = [*self.marks, (mark, dict(self.now))][-2:]
        self.commit()
        self.nothing_is_left()

    @rule(data=st.data())
    def reset(self, data):
        if not self.all_marks:
            return
        mark = data.draw(st.sampled_from(self.all_marks[-4:]))
        known = [m for m, _ in self.marks]
        if mark not in known:
            with pytest.raises(StateError, match="cannot go back to"):
                self.store.reset(mark)
            return
        self.store.reset(mark)
        self.marks = self.marks[: known.index(mark) + 1]
        self.now = dict(self.marks[-1][1])
        self.is_claimed = True

    @rule()
    def close_and_open(self):
        self.store.close()
        self.store.close()
        self.commit()
        self.nothing_is_left()
        self.open(self.path)

    @rule()
    def be_killed_and_open(self):
        """Go on with copies of the files: a process that is killed leaves nothing else."""
        self.n_lives += 1
        place = self.root / str(self.n_lives)
        shutil.copytree(self.path.parent, place)
        self.store._file._abandon()
        shutil.rmtree(self.path.parent)
        self.discarded = set()  # what no commit has confirmed is not promised
        self.open(place / "loops")

    def nothing_is_left(self):
        self.gone |= getattr(self, "discarded", set())
        assert not self.gone & set(re.findall(rb"<said \d+>", raw(self.path)))

    @invariant()
    def holds_what_the_twin_holds(self):
        texts = sorted(key for key in self.now if key is not None)
        assert list(self.store.keys()) == texts + [None] * (None in self.now)
        assert len(self.store) == len(self.now)
        for key in (None, "", "key ann", "key bob", "key \0", "key eve \U0001f600"):
            assert self.store.get(key) == self.now.get(key)

    def teardown(self):
        if hasattr(self, "store"):
            self.store.close()
            shutil.rmtree(self.root)


TestShelfAndTwin = ShelfAndTwin.TestCase
TestShelfAndTwin.settings = settings(examples(25), stateful_step_count=40)
