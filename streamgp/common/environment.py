"""The numerical environment: what the last digits of a result depend on besides configuration.

Another version of a library, another BLAS kernel or another number of threads rounds sums
differently. Results are bitwise equal where `environment` returns the same; elsewhere they agree to
about 1e-9. It is recorded with what is saved, and compared when that is restored.

"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import Any

from streamgp import __version__

ONE_THREAD: Mapping[str, str] = MappingProxyType(
    dict.fromkeys(
        (
            "OPENBLAS_NUM_THREADS",
            "OMP_NUM_THREADS",
            "MKL_NUM_THREADS",
            "BLIS_NUM_THREADS",
            "VECLIB_MAXIMUM_THREADS",  # macOS
        ),
        "1",
    )
)
"""Environment variables that BLAS libraries and OpenMP read when they load."""
# Where these are set, they take precedence over those above.
_STRONGER = (
    "MKL_DOMAIN_NUM_THREADS",
    *(f"BLIS_{loop}_NT" for loop in ("JC", "PC", "IC", "JR", "IR")),
)
_UNKNOWN = "unknown"
_NOT_BITWISE = "what follows agrees to about 1e-9, not bitwise"


class DifferentEnvironmentWarning(UserWarning):
    """A snapshot is restored in a numerical environment other than the one it was taken in."""


def use_one_thread() -> None:
    """Limit BLAS and OpenMP to one thread, in this process and in those that it starts.

    Applies to libraries already loaded and to those loaded later. For programs only: a library
    leaves the number of threads to the program that uses it.
    """
    os.environ.update(ONE_THREAD)
    for name in _STRONGER:
        os.environ.pop(name, None)
    if "numpy" in sys.modules:
        from threadpoolctl import threadpool_limits

        threadpool_limits(1)


def environment() -> dict[str, str]:
    """Return the numerical environment of this process, as plain JSON values.

    Returns
    -------
    By name: the versions of `streamgp`, `python`, `river`, `numpy` and `scipy`; `machine`, the
    architecture; `libc`, whose functions `math` calls; `simd`, the instructions that numpy uses;
    `blas`, name and version of each library that numpy and scipy use, their `blas_kernel` and
    `blas_threads`. What cannot be determined is "unknown".

    Examples
    --------
    >>> found = environment()
    >>> list(found)
    ['streamgp', 'python', 'river', 'numpy', 'scipy', 'machine', 'libc', 'simd', 'blas',
     'blas_kernel', 'blas_threads']
    >>> found["streamgp"], found == environment()
    ('0.1.0', True)

    """
    fixed, libraries = _found()
    # The only value that may change while a process runs; reading it takes microseconds.
    threads = _joined([str(library.num_threads) for library in libraries])
    return {**fixed, "blas_threads": threads}


def differences(was: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    """Return where an environment differs from that of this process, with both values.

    Parameters
    ----------
    was
        The other environment. Entries that only one of the two versions of streamgp records are
        ignored.

    Examples
    --------
    >>> differences({**environment(), "blas_kernel": "Z80", "weather": "fine"}).keys()
    dict_keys(['blas_kernel'])

    """
    here = environment()
    return {
        name: (_shown(was[name]), value)
        for name, value in here.items()
        if name in was and was[name] != value
    }


def differences_text(found: Mapping[str, tuple[str, str]]) -> str:
    """Return the result of `differences` in words.

    Examples
    --------
    >>> differences_text({"numpy": ("2.3.5", "2.4.6"), "blas_kernel": ("Haswell", "SkylakeX")})
    'numpy 2.3.5, here 2.4.6; blas_kernel Haswell, here SkylakeX'

    """
    return "; ".join(f"{name} {was}, here {here}" for name, (was, here) in found.items())


def warn_if_different(was: Mapping[str, Any] | None) -> None:
    """Warn the caller's caller if a snapshot was taken in another environment.

    Parameters
    ----------
    was
        The environment in which it was taken; None if it does not record one: then there is no
        warning.

    """
    found = {} if was is None else differences(was)
    if found:
        warnings.warn(
            "snapshot was taken in another numerical environment "
            f"({differences_text(found)}); {_NOT_BITWISE}",
            DifferentEnvironmentWarning,
            stacklevel=3,
        )


@cache
def _found() -> tuple[dict[str, str], Sequence[Any]]:
    """Return the values that do not change while the process runs, and the BLAS libraries."""
    import platform
    from importlib.metadata import version

    import numpy
    import scipy

    libraries = _blas_libraries()
    infos = [library.info() for library in libraries]
    # Where no library that can be queried is found (Accelerate, netlib), numpy knows its own.
    names = [f"{info['internal_api']} {info['version']}" for info in infos] or [_built_with()]
    kernels = [str(info.get("architecture") or _UNKNOWN) for info in infos]
    fixed = {
        "streamgp": __version__,
        "python": platform.python_version(),
        "river": version("river"),
        "numpy": numpy.__version__,
        "scipy": scipy.__version__,
        "machine": platform.machine(),
        "libc": _libc(),
        "simd": _simd(),
        "blas": _joined(names),
        "blas_kernel": _joined(kernels),
    }
    return fixed, libraries


def _blas_libraries() -> Sequence[Any]:
    """Return the controllers of the BLAS libraries of numpy and scipy, in this order.

    Where none is bundled with them (conda, packages of a Linux distribution), it cannot be told
    which ones they are linked with: then all that are loaded at the first call are returned, so
    that a package imported before, with a BLAS of its own, shows as a difference.
    """
    import numpy
    import scipy.linalg
    from threadpoolctl import ThreadpoolController

    found = ThreadpoolController().select(user_api="blas").lib_controllers
    # Wheels bundle their own; those of other packages do not matter here.
    own = []
    for package in (numpy, scipy):
        root = os.path.realpath(os.path.dirname(str(package.__file__)))
        folders = (f"{root}.libs{os.sep}", f"{root}{os.sep}")
        own += [library for library in found if str(library.filepath).startswith(folders)]
    return own or found


def _built_with() -> str:
    blas = _numpy_configuration().get("Build Dependencies", {}).get("blas", {})
    return f"{blas.get('name', _UNKNOWN)} {blas.get('version', _UNKNOWN)}"


def _simd() -> str:
    extensions = _numpy_configuration().get("SIMD Extensions", {})
    return " ".join([*extensions.get("baseline", []), *extensions.get("found", [])]) or _UNKNOWN


def _numpy_configuration() -> dict[str, Any]:
    import numpy

    found: Any = numpy.show_config(mode="dicts")
    return dict(found)


def _libc() -> str:
    if sys.platform == "win32":
        return _UNKNOWN
    try:
        return os.confstr("CS_GNU_LIBC_VERSION") or _UNKNOWN
    except (ValueError, OSError):  # another system, or another libc
        return _UNKNOWN


def _shown(value: object) -> str:
    """Return a value recorded by another process as printable text, shortened."""
    text = str(value)[:80]
    return text if text.isprintable() else ascii(text)


def _joined(values: Sequence[str]) -> str:
    """Join values into one text; a single one if they are all the same."""
    return ", ".join(dict.fromkeys(values) if len(set(values)) == 1 else values) or _UNKNOWN
