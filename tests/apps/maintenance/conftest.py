"""The commands of maintenance in tests."""

import pytest

from streamgp.apps.maintenance import forget, retract


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look often whether the workers have done what was requested: each look waits for news."""
    for program in (forget, retract):
        monkeypatch.setattr(program, "PATIENCE_S", 0.02)
