import importlib

import pytest


@pytest.fixture(params=["vectorised", "compiled"])
def kernels(request):
    """What grows the trees, by either way."""
    if request.param == "compiled":
        pytest.importorskip("numba")
    return importlib.import_module(f"streamgp.trees.{request.param}")
