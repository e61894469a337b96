import pytest

from streamgp.gp import packed


@pytest.fixture
def small_blocks(monkeypatch):
    """Blocks of 16, 16, 32, 64, ... rows of a factor instead of thousands"""
    monkeypatch.setattr(packed, "_FIRST", 16)
