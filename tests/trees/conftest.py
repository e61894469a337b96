import importlib

import pytest


@pytest.fixture(params=["numpy_backend", "numba_backend"])
def kernels(request):
    """What grows the trees, by either way."""
    if request.param == "numba_backend":
        pytest.importorskip("numba")
    return importlib.import_module(f"streamgp.trees.{request.param}")
