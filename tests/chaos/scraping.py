"""Counters of the workers, scraped all the time and compared with the topics.

A worker counts what it has committed. So the counters of all its lives together never exceed what
the topics hold: when a life is killed, what it counted since the last scrape is lost, and what it
committed without counting.

"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from http.client import HTTPException
from threading import Event, Lock, Thread
from time import time
from urllib.request import urlopen

import msgspec
from prometheus_client.parser import text_string_to_metric_families

from connectors.topics import Record

COUNTERS = {
    "predictions": "streamgp_predictions_total",
    "label_requests": "streamgp_label_requests_total",
    "labels_learned": "streamgp_labels_learned_total",
    "dead_letters": "streamgp_dead_letters_total",
}
"""What is counted, and the worker's counter for it."""
_EVERY_S = 0.25
_TIMEOUT_S = 1.0


class Written:
    """Number of records of each kind that a worker counts, as the topics hold them.

    Parameters
    ----------
    until
        Only records written by then, POSIX seconds; None for all.

    Examples
    --------
    >>> written = Written()
    >>> place = {"partition": 0, "offset": 0, "at": 60.0, "key": b"ann"}
    >>> written.add(Record(topic="requests", value=b'{"type": "label.request"}', **place))
    >>> written.add(Record(topic="requests", value=b'{"type": "expired"}', **place))
    >>> written.add(Record(topic="consensus", value=None, **place))
    >>> written.counts
    Counter({'label_requests': 1})

    """

    def __init__(self, until: float | None = None) -> None:
        self.counts: Counter[str] = Counter()
        self._until = until

    def add(self, record: Record) -> None:
        """Count a record."""
        if self._until is not None and record.at > self._until:
            return
        if record.value is None and record.topic != "dead-letters":
            return  # a deletion; a dead letter repeats the bytes of its input, if there are any
        kind = {
            "predictions": "predictions",
            "consensus": "labels_learned",
            "dead-letters": "dead_letters",
        }.get(record.topic)
        if record.topic == "requests":
            is_label = msgspec.json.decode(record.value)["type"] == "label.request"
            kind = "label_requests" if is_label else None
        if kind is not None:
            self.counts[kind] += 1


class Scraper:
    """Reader that scrapes the counters of all workers repeatedly; `with` starts and ends it.

    Parameters
    ----------
    targets
        Function that returns each life of a running worker, by a unique name, and the address of
        its metrics.

    Attributes
    ----------
    n_scrapes
        Number of scrapes of a worker.
    n_backwards
        How often a counter was smaller than before in the same life.

    """

    # _last  by life, its counters at the last scrape
    def __init__(self, targets: Callable[[], Iterable[tuple[str, str]]]) -> None:
        self.n_scrapes = self.n_backwards = 0
        self._targets = targets
        self._last: dict[str, Counter[str]] = {}
        self._lock = Lock()
        self._has_ended = Event()
        self._thread = Thread(target=self._run, name="scraper", daemon=True)

    def __enter__(self) -> Scraper:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._has_ended.set()
        self._thread.join()

    def totals(self) -> Counter[str]:
        """Return the counters of all lives together."""
        with self._lock:
            return sum(self._last.values(), Counter[str]())

    def scrape(self) -> float:
        """Scrape the workers that respond; return when that began, POSIX seconds."""
        began = time()
        for life, address in self._targets():
            try:
                with urlopen(f"http://{address}/metrics", timeout=_TIMEOUT_S) as answer:
                    text = answer.read().decode()
            except (OSError, HTTPException):  # stopped, killed meanwhile, or not yet there
                continue
            if (life, address) in self._targets():  # else another life may have answered
                self._take(life, text)
        return began

    def _take(self, life: str, text: str) -> None:
        found = counters(text)
        with self._lock:
            before = self._last.get(life, Counter[str]())
            self.n_backwards += sum(found[name] < n for name, n in before.items())
            self._last[life] = found
            self.n_scrapes += 1

    def _run(self) -> None:
        while not self._has_ended.wait(_EVERY_S):
            self.scrape()


def counters(text: str) -> Counter[str]:
    """Return the counters of a worker from the text of its metrics.

    Examples
    --------
    >>> counters('''# TYPE streamgp_labels_learned_total counter
    ... streamgp_labels_learned_total{origin="asked"} 3.0
    ... streamgp_labels_learned_total{origin="upheld"} 2.0
    ... ''')
    Counter({'labels_learned': 5})

    """
    names = {counter: name for name, counter in COUNTERS.items()}
    found: Counter[str] = Counter()
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if sample.name in names:
                found[names[sample.name]] += int(sample.value)
    return found
