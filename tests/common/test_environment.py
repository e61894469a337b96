"""The numerical environment is described, recorded in snapshots, and compared when they return."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings
from pathlib import Path

import msgspec
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from streamgp import InteractiveLoop, KeyedLoops, isgp
from streamgp.common import environment
from streamgp.common.environment import differences, differences_text
from streamgp.interactive import DifferentEnvironmentWarning, Event
from streamgp.interactive.state.snapshot import Snapshot
from tests.helpers.blas_kernels import other_kernel

LOOPS = {"InteractiveLoop": InteractiveLoop, "KeyedLoops": KeyedLoops}
loops = pytest.mark.parametrize("loops", LOOPS.values(), ids=LOOPS)
# Loops of keys write the record as one loop does; by day they are seen to say nothing without it.
in_processes = pytest.mark.parametrize(
    "loops",
    [InteractiveLoop, pytest.param(KeyedLoops, marks=pytest.mark.nightly)],
    ids=LOOPS,
)


def run(code: str, *arguments: str | Path, **variables: str) -> str:
    """Run code in a process of its own; return what it prints."""
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def taught(loops):
    """Return loops that have learned one label."""
    made = loops(isgp(seed=1))
    made.on_event(Event(event_id="1", x={"wap1": 1.0}, y="hall", occurred_at=0.0), 0.0)
    return made


# --- what it says


def test_the_description_is_plain_text_and_the_same_each_time() -> None:
    found = environment.environment()
    assert found == environment.environment()
    assert all(type(name) is type(value) is str and value for name, value in found.items())
    assert json.loads(json.dumps(found)) == found


PRINT = (
    "import json; from streamgp.common.environment import environment; "
    "print(json.dumps(environment()))"
)


def test_another_kernel_is_the_only_difference() -> None:
    kernel = other_kernel()
    threads = environment.environment()["blas_threads"]
    there = json.loads(run(PRINT, OPENBLAS_CORETYPE=kernel, OPENBLAS_NUM_THREADS=threads))
    assert differences(there).keys() == {"blas_kernel"}
    assert there["blas_kernel"] == kernel


def test_other_instructions_of_numpy_are_a_difference() -> None:
    """Its exponentials and logarithms round in another way with AVX-512 than without."""
    wide = environment.environment()["simd"].split()
    if "X86_V4" not in wide:
        pytest.skip("needs a processor with AVX-512")
    narrow = {"NPY_DISABLE_CPU_FEATURES": " ".join(wide[wide.index("X86_V4") :])}
    there = json.loads(run(PRINT, **narrow))
    assert there["simd"].split() == wide[: wide.index("X86_V4")]


def test_the_number_of_threads_is_that_of_the_moment() -> None:
    before = environment.environment()["blas_threads"]
    with threadpool_limits(1, user_api="blas"):
        assert environment.environment()["blas_threads"] == "1"
    assert environment.environment()["blas_threads"] == before


def test_only_what_both_record_is_compared() -> None:
    here = environment.environment()
    there = {**here, "numpy": "1.26.4", "moon": "full"}
    del there["scipy"]
    assert differences(there) == {"numpy": ("1.26.4", here["numpy"])}
    assert differences({}) == {}


def test_what_others_have_recorded_fits_into_a_line() -> None:
    found = differences({"numpy": "2\n" * 99, "blas": None})
    assert found["blas"][0] == "None"
    assert "\n" not in differences_text(found)
    assert len(found["numpy"][0]) < 200


# --- threads


def test_a_library_leaves_the_threads_of_its_host_alone() -> None:
    code = """
import os
before = dict(os.environ)
import numpy, scipy.linalg
from threadpoolctl import threadpool_info
from streamgp import InteractiveLoop, isgp
from streamgp.interactive import Event
threads = [each["num_threads"] for each in threadpool_info()]
loop = InteractiveLoop(isgp(seed=1))
loop.on_event(Event(event_id="1", x={"a": 1.0}, y="b", occurred_at=0.0), 0.0)
InteractiveLoop.restore(loop.snapshot(), isgp(seed=1))
assert [each["num_threads"] for each in threadpool_info()] == threads
assert dict(os.environ) == before
print(max(threads))
"""
    assert run(code, OPENBLAS_NUM_THREADS="2") == f"{min(2, os.cpu_count() or 1)}\n"


MANY = dict.fromkeys(
    (*environment.ONE_THREAD, "MKL_DOMAIN_NUM_THREADS", "BLIS_JC_NT", "BLIS_IR_NT"), "2"
)


@pytest.mark.parametrize(
    "first",
    [
        pytest.param("", marks=pytest.mark.nightly),
        "import numpy, scipy.linalg, sklearn.svm",
    ],
)
def test_a_program_has_one_thread_whenever_libraries_load(first: str) -> None:
    code = f"""
{first}
import os
from streamgp.common.environment import use_one_thread
use_one_thread()
import numpy, scipy.linalg, sklearn.svm
from threadpoolctl import threadpool_info
print([each["num_threads"] for each in threadpool_info() if each["num_threads"] != 1])
print({{n: v for n, v in os.environ.items() if n in {[*MANY]} and v != "1"}})
"""
    assert run(code, **MANY) == "[]\n{}\n"


# --- snapshots


SAVE = """
import sys
from pathlib import Path
from streamgp import isgp
from streamgp.interactive import Event, InteractiveLoop, KeyedLoops
made = globals()[sys.argv[1]](isgp(seed=1))
made.on_event(Event(event_id="1", x={"wap1": 1.0}, y="hall", occurred_at=0.0), 0.0)
Path(sys.argv[2]).write_bytes(made.snapshot())
"""


@in_processes
def test_a_snapshot_of_another_environment_is_restored_with_a_warning(
    loops: type[InteractiveLoop], tmp_path: Path
) -> None:
    kernel = other_kernel()
    threads = environment.environment()["blas_threads"]
    path = tmp_path / "snapshot"
    variables = {"OPENBLAS_CORETYPE": kernel, "OPENBLAS_NUM_THREADS": threads}
    run(SAVE, loops.__name__, path, **variables)
    with pytest.warns(DifferentEnvironmentWarning) as caught:
        restored = loops.restore(path.read_bytes(), isgp(seed=1))
    here = environment.environment()["blas_kernel"]
    assert [str(each.message) for each in caught] == [
        f"snapshot was taken in another numerical environment (blas_kernel {kernel}, here {here}); "
        "what follows agrees to about 1e-9, not bitwise"
    ]
    assert restored.snapshot() == taught(loops).snapshot()  # and is of this environment from now on
    assert caught[0].filename == __file__


@in_processes
def test_the_same_environment_gives_the_same_bytes_and_no_warning(
    loops: type[InteractiveLoop], tmp_path: Path
) -> None:
    path = tmp_path / "snapshot"
    threads = environment.environment()["blas_threads"]
    run(SAVE, loops.__name__, path, OPENBLAS_NUM_THREADS=threads)
    data = taught(loops).snapshot()
    assert path.read_bytes() == data
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert loops.restore(data, isgp(seed=1)).snapshot() == data


@loops
def test_nothing_is_said_of_a_snapshot_without_the_record(loops: type[InteractiveLoop]) -> None:
    data = taught(loops).snapshot(with_environment=False)
    assert b'"environment"' not in data
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loops.restore(data, isgp(seed=1))


def test_the_environment_is_recorded_once_for_all_keys() -> None:
    keyed = KeyedLoops(isgp(seed=1), max_keys=1)
    for key in ("ann", "bob", "cy"):
        event = Event(event_id="1", key=key, x={"wap1": 1.0}, y="hall", occurred_at=0.0)
        keyed.on_event(event, 0.0)
    assert keyed.snapshot().count(b'"blas_kernel"') == 1


def test_a_streamgp_that_does_not_know_the_record_reads_the_snapshot() -> None:
    class Header(msgspec.Struct):  # as it was before
        kind: str
        configuration: str
        body: dict[str, object]
        blobs: list[int]

    data = Snapshot(kind="k", fingerprint="1f", body={"n": 3}, environment={"numpy": "2"})
    text = data.to_bytes()[26:-16]
    assert msgspec.json.decode(text, type=Header).body == {"n": 3}


def test_threads_of_this_process_are_those_recorded() -> None:
    threads = {each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"}
    assert {int(n) for n in environment.environment()["blas_threads"].split(", ")} <= threads
