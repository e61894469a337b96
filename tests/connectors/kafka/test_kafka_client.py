"""The first contact with a broker, on a clock that is set."""

from types import SimpleNamespace

import pytest

from connectors.kafka import client
from connectors.topics import BrokerError


@pytest.fixture
def tried(monkeypatch):
    """Return a function that probes a server which takes some time to show what it wants."""

    def tried(takes_s, timeout_s):
        now, waits = 100.0, []

        def pass_by(seconds):
            nonlocal now
            now += seconds

        def try_server(_server, _context, _login, wait_s):
            waits.append(wait_s)
            pass_by(min(takes_s, wait_s))
            return "it wants TLS" if takes_s <= wait_s else "no answer"

        monkeypatch.setattr(client, "_try_server", try_server)
        clock = SimpleNamespace(monotonic=lambda: now, sleep=pass_by)
        monkeypatch.setattr(client, "time", clock)
        with pytest.raises(BrokerError) as caught:
            client.probe(["there:1"], context=None, login=None, until=100.0 + timeout_s)
        return str(caught.value), len(waits), now - 100.0

    return tried


def test_what_a_server_has_shown_is_told_though_there_is_time_for_half_a_try(tried):
    text, n_tries, took_s = tried(takes_s=0.75, timeout_s=1.5)
    assert text == "broker cannot be reached: there:1: it wants TLS"
    assert (n_tries, took_s) == (1, 0.75)


def test_a_server_is_tried_again_and_again_until_the_time_is_over(tried):
    text, n_tries, took_s = tried(takes_s=0.0, timeout_s=1.9)
    assert text == "broker cannot be reached: there:1: it wants TLS"
    assert n_tries == 10
    assert 1.7 < took_s < 1.9


def test_a_server_that_shows_nothing_gives_no_answer(tried):
    assert tried(takes_s=60.0, timeout_s=1.0) == (
        "broker cannot be reached: there:1: no answer",
        1,
        1.0,
    )
