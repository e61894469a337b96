"""The commands of maintenance in tests."""

import pytest

from streamgp.apps.deployment import deployment
from streamgp.apps.maintenance import forget, retract


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look often whether workers have done, or learned, something: each look waits for news."""
    for program in (deployment, forget, retract):
        monkeypatch.setattr(program, "PATIENCE_S", 0.02)
