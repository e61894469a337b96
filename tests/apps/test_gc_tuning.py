from types import SimpleNamespace

import pytest

from streamgp.apps import gc_tuning


@pytest.mark.parametrize(("n_frozen", "undone"), [(0, ["unfreeze"]), (7, [])])
def test_garbage_is_looked_for_seldom_until_the_block_is_left(monkeypatch, n_frozen, undone):
    """What the process had frozen before stays so, and with it all the rest."""
    calls, thresholds = [], [(700, 10, 10)]
    collector = SimpleNamespace(
        **{
            name: lambda name=name: calls.append(name) for name in ("collect", "freeze", "unfreeze")
        },
        get_freeze_count=lambda: n_frozen,
        get_threshold=lambda: thresholds[-1],
        set_threshold=lambda *given: thresholds.append(given),
    )
    monkeypatch.setattr(gc_tuning, "gc", collector)
    with gc_tuning.seldom_collected():
        assert calls == ["collect", "freeze"]
        assert thresholds[-1] > thresholds[0]
    assert calls[2:] == undone
    assert thresholds[-1] == thresholds[0]
