"""Thousands of damaged snapshots: a clear error each, or, by chance, a snapshot that is whole.

As many as the profile of hypothesis draws examples: 300 of each kind, or ten thousand by night.

"""

import random
import struct
import time
import tracemalloc
from hashlib import blake2b

import pytest
from hypothesis import settings

from streamgp import GPClassifier, SkepticalClassifier, budgets
from streamgp.interactive import InteractiveLoop, KeyedLoops, SnapshotError
from tests.interactive.stories import Story, told

N = 10 * settings.default.max_examples
HEAD = struct.Struct("<8sHQQ")


def model():
    return SkepticalClassifier(GPClassifier(), budget=budgets.AtMostPer(3, 9.0), warm_up=4, seed=3)


@pytest.fixture(scope="module")
def snapshots():
    """A loop and keyed loops after a short conversation."""
    loop = InteractiveLoop(model(), expires_after_s=5.0)
    keyed = KeyedLoops(model(), max_keys=1)
    for target, key in ((loop, None), (keyed, "ann"), (keyed, "bob")):
        story, messages = Story(5, key=key, labels=("a", "b", "c")), []
        for _ in range(12):
            messages = told(target, story.next(messages), key=key)
    return [loop.snapshot(), keyed.snapshot()]


def damaged(data, rng):
    """Change, cut, insert or repeat some bytes; now and then a whole region."""
    data = bytearray(data)
    for _ in range(rng.choice([1, 1, 1, 2, 8])):
        at = rng.randrange(len(data) + 1)
        match rng.randrange(6):
            case 0 if at < len(data):
                data[at] ^= 1 << rng.randrange(8)
            case 1:
                del data[at:]
            case 2:
                del data[at : at + rng.randrange(1, 40)]
            case 3:
                data[at:at] = rng.randbytes(rng.randrange(1, 40))
            case 4:
                start = rng.randrange(len(data) + 1)
                data[at:at] = data[start : start + rng.randrange(1, 60)]
            case _:
                data[at : at + 8] = rng.randbytes(8)
    return bytes(data)


def retold(data, rng):
    """Change the header's text, and make lengths and checksum fit again: a forger's snapshot."""
    magic, version, _, n_header = HEAD.unpack_from(data)
    header, rest = data[HEAD.size : HEAD.size + n_header], data[HEAD.size + n_header : -16]
    at = rng.randrange(len(header))
    words = [b"null", b"-1", b"1e999", b"[]", b"{}", b'""', b"true", b"NaN", b"9" * 40, b'"x"']
    new = rng.choice([*words, b"[" * 5000, header[at : at + 30]])
    header = header[:at] + new + header[at + rng.choice([0, 1, 4, len(new)]) :]
    size = HEAD.size + len(header) + len(rest) + 16
    data = HEAD.pack(magic, version, size, len(header)) + header + rest
    return data + blake2b(data, digest_size=16).digest()


def restored(which, data):
    """Restore, and let the loop go on if it can."""
    try:
        if which == 0:
            loop = InteractiveLoop.restore(data, model())
        else:
            loop = KeyedLoops.restore(data, model(), max_keys=1)
    except SnapshotError as error:
        return str(error)
    return loop


# A forger may as well name another numerical environment.
@pytest.mark.filterwarnings("ignore::streamgp.common.environment.DifferentEnvironmentWarning")
@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("damage", [damaged, retold])
def test_damage_gives_a_clear_error_and_costs_little(snapshots, damage, which):
    rng = random.Random(which)
    whole = snapshots[which]
    tracemalloc.start()
    start = time.process_time()  # whatever else the machine does
    n_restored = 0
    for _ in range(N):
        data = damage(whole, rng)
        outcome = restored(which, data)
        if isinstance(outcome, str):
            assert 20 < len(outcome) < 2000
        else:
            n_restored += data != whole
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 30e6
    assert time.process_time() - start < 120.0  # of all; one that hangs meets its deadline
    if damage is damaged:
        assert n_restored == 0
