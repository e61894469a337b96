import pytest

from streamgp.gp import cholesky


@pytest.fixture
def small_blocks(monkeypatch):
    """Blocks of 16, 16, 32, 64, ... rows of a factor instead of thousands"""
    monkeypatch.setattr(cholesky, "_FIRST", 16)
