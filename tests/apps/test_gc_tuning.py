import gc

from streamgp.apps.gc_tuning import seldom_collected


def test_garbage_is_looked_for_seldom_until_the_block_is_left():
    before, frozen = gc.get_threshold(), gc.get_freeze_count()
    with seldom_collected():
        assert gc.get_threshold() > before
        assert gc.get_freeze_count() > 0
    assert gc.get_threshold() == before
    assert bool(gc.get_freeze_count()) is bool(frozen)
