"""Metrics of a worker in Prometheus's format, and its health and readiness, over HTTP.

Nothing here names a key or an event, nor a person unless configured. prometheus-client is imported
only when an address is served.

"""

from __future__ import annotations

import socket
import socketserver
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from threading import Lock, Semaphore, Thread
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from connectors.worker.metrics import WorkerMetrics
from streamgp.apps.release import release
from streamgp.common.running_stats import Histogram
from streamgp.config.validation import ConfigError, parse_bind

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry, Metric

PREFIX = "streamgp_"
KINDS = ("label", "challenge")

Value: TypeAlias = float | Histogram | None


class Family(NamedTuple):
    """A metric: name without the prefix, kind, help text, current value, and names of labels.

    One with labels has a value for the text, or texts, of these.
    """

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    help: str
    value: Callable[[WorkerMetrics], Value | Mapping[Any, Value]]
    labels: tuple[str, ...] = ()


def _age(at: float | None) -> float:
    return 0.0 if at is None else max(0.0, time.time() - at)


FAMILIES = (
    Family("events_total", "counter", "Events processed.", lambda m: m.events),
    Family("predictions_total", "counter", "Predictions written.", lambda m: m.predictions),
    Family("answers_total", "counter", "Answers, by result.", lambda m: m.answers, ("result",)),
    Family(
        "dead_letters_total",
        "counter",
        "Inputs that could not be used, by stage.",
        lambda m: m.dead_letters,
        ("stage",),
    ),
    Family(
        "unusable_inputs_total",
        "counter",
        "Inputs that count against max_bad_share.",
        lambda m: m.unusable,
    ),
    Family("duplicates_total", "counter", "Duplicate answers, dropped.", lambda m: m.duplicates),
    Family(
        "label_requests_total",
        "counter",
        "Label requests, by the strategy that asked.",
        lambda m: m.requests,
        ("criterion",),
    ),
    Family(
        "challenges_total",
        "counter",
        "Challenges that have ended, by outcome.",
        lambda m: m.challenges,
        ("outcome",),
    ),
    Family(
        "labels_learned_total",
        "counter",
        "Labels learned, by origin.",
        lambda m: m.learned,
        ("origin",),
    ),
    Family(
        "open_questions",
        "gauge",
        "Questions waiting for an answer.",
        lambda m: {kind: sum(each.n(kind) for each in m.questions.values()) for kind in KINDS},
        ("kind",),
    ),
    Family(
        "oldest_question_age_seconds",
        "gauge",
        "Age of the oldest open question.",
        lambda m: _age(m.oldest_question),
    ),
    Family(
        "consumer_lag_records",
        "gauge",
        "Records waiting in a partition.",
        lambda m: m.lags,
        ("topic", "partition"),
    ),
    Family(
        "batch_duration_seconds",
        "histogram",
        "Duration of batches, by phase.",
        lambda m: m.durations,
        ("phase",),
    ),
    Family(
        "last_commit_timestamp_seconds",
        "gauge",
        "Time of the last commit.",
        lambda m: m.committed_at,
    ),
    Family(
        "restore_duration_seconds",
        "histogram",
        "Duration of the restores of partitions.",
        lambda m: m.restores,
    ),
    Family(
        "rebalances_total",
        "counter",
        "Changes of the partition assignment.",
        lambda m: m.rebalances,
    ),
    Family(
        "keys", "gauge", "Known keys, by where their loops are held.", lambda m: m.keys, ("state",)
    ),
    Family(
        "stuck_partition",
        "gauge",
        "1 where a partition has records and yields none, else 0.",
        lambda m: {place: float(place in m.stuck) for place in {*m.lags, *m.stuck}},
        ("topic", "partition"),
    ),
    Family(
        "missed_inputs_total",
        "counter",
        "Inputs that were deleted before they were read.",
        lambda m: m.missed,
    ),
    Family(
        "broker_away_seconds",
        "gauge",
        "Time for which the broker has not answered; 0 while it does.",
        lambda m: m.broker_away_s,
    ),
    Family(
        "prediction_confidence",
        "histogram",
        "Probabilities of the labels predicted.",
        lambda m: m.confidence,
    ),
    Family(
        "predicted_share",
        "gauge",
        "Share of each label among the latest predictions.",
        lambda m: m.shares.of(most=50),
        ("label",),
    ),
    Family(
        "challenge_precision_ratio",
        "gauge",
        "Share of answered challenges that changed a label.",
        lambda m: m.challenge_precision,
    ),
    Family(
        "label_error_estimate",
        "gauge",
        "Estimated share of wrong first answers.",
        lambda m: {name or "": rate.estimate for name, rate in m.errors.items()},
        ("annotator",),
    ),
    Family(
        "quarantined_annotators",
        "gauge",
        "Annotators in quarantine, counted once for each key.",
        lambda m: {name or "": n for name, n in m.n_quarantined.items()},
        ("annotator",),
    ),
    Family(
        "drift_detected_total",
        "counter",
        "Changes found by ADWIN, and in labels by the drift tests of learners.",
        lambda m: m.drifts,
        ("signal",),
    ),
    Family(
        "build_info",
        "gauge",
        "1, with the version of streamgp, and the commit if it is known.",
        lambda _: {release(): 1.0},
        ("version",),
    ),
)
"""All metrics."""


class Collector:
    """Generates Prometheus's view of a worker's metrics on each scrape."""

    def __init__(self, metrics: WorkerMetrics) -> None:
        self._metrics = metrics

    def collect(self) -> Iterable[Metric]:
        """Return all metrics as of one point in time."""
        with self._metrics.reading():
            return [_collected(family, self._metrics) for family in FAMILIES]


def _collected(family: Family, metrics: WorkerMetrics) -> Any:
    from prometheus_client.core import (
        CounterMetricFamily,
        GaugeMetricFamily,
        HistogramMetricFamily,
    )

    made: Any = {
        "counter": CounterMetricFamily,
        "gauge": GaugeMetricFamily,
        "histogram": HistogramMetricFamily,
    }[family.kind](PREFIX + family.name, family.help, labels=family.labels)
    current = family.value(metrics)
    by_labels = current if isinstance(current, Mapping) else {(): current}
    for texts, value in by_labels.items():
        labels = list(map(str, texts if isinstance(texts, tuple) else (texts,)))
        if isinstance(value, Histogram):
            made.add_metric(labels, value.buckets(), value.total)
        elif value is not None:
            made.add_metric(labels, value)
    return made


def registry_of(metrics: WorkerMetrics) -> CollectorRegistry:
    """Return a registry with the metrics of a worker and of its process."""
    from prometheus_client import CollectorRegistry, ProcessCollector

    registry = CollectorRegistry()
    registry.register(Collector(metrics))
    ProcessCollector(registry=registry)
    return registry


# --- The server.


@dataclass(frozen=True, slots=True)
class Observation:
    """A worker's metrics and the address that serves them."""

    metrics: WorkerMetrics
    url: str


def check_installed() -> None:
    """Raise ConfigError if the package that metrics need is missing."""
    try:
        import prometheus_client  # noqa: F401 (whether it is there)
    except ImportError:
        raise ConfigError(
            "observe.bind needs prometheus-client; install it with: pip install prometheus-client"
        ) from None


@contextmanager
def observed(bind: str, *, names_annotators: bool = False) -> Iterator[Observation]:
    """Serve the metrics of a worker, `/metrics`, `/healthz` and `/readyz`.

    Parameters
    ----------
    bind
        Host and port; port 0 for any free port.

    Raises
    ------
    ConfigError
        If the address cannot be used, or prometheus-client is not installed.

    """
    check_installed()
    metrics = WorkerMetrics(names_annotators=names_annotators)
    host, port = parse_bind(bind)
    try:
        server = _Server(host, port, metrics)
    except OSError as error:
        raise ConfigError(
            f"cannot serve metrics at {bind}: {error.strerror or error}; give another "
            "observe.bind, or --observe, with port 0 for a free one"
        ) from None
    thread = Thread(target=server.serve_forever, name="observe", daemon=True)
    thread.start()
    shown = f"[{host}]" if ":" in host else host
    try:
        yield Observation(metrics, f"http://{shown}:{server.server_address[1]}")
    finally:
        server.shutdown()
        server.server_close()


MOST_CONNECTIONS = 32
"""The largest number of concurrent clients: each takes a thread and a file descriptor of the
worker."""
LONGEST_S = 10.0
"""How long a client may take to ask and to read the answer, however little at a time."""


class _Server(socketserver.ThreadingTCPServer):
    # _free  number of further connections allowed
    # _open  open connections, the oldest first, and until when each may stay
    # _lock  guards `_open`: connections end in their own threads
    allow_reuse_address = sys.platform != "win32"  # where it shares the port with any program
    daemon_threads = True

    def __init__(self, host: str, port: int, metrics: WorkerMetrics) -> None:
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.metrics = metrics
        self.registry = registry_of(metrics)
        self._free = Semaphore(MOST_CONNECTIONS)
        self._open: dict[Any, float] = {}
        self._lock = Lock()
        super().__init__((host, port), _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer a client in a thread, in place of the oldest one where too many are there.

        A supervisor asks whether the worker is well, and restarts it if there is no answer: no
        number of idle clients may keep its question out.
        """
        if not self._free.acquire(blocking=False):
            self._end_oldest()
            if not self._free.acquire(timeout=LONGEST_S):
                self.shutdown_request(request)
                return
        with self._lock:
            self._open[request] = time.monotonic() + LONGEST_S
        try:
            super().process_request(request, client_address)
        except BaseException:  # no thread was started that would note it
            self._note_end(request)
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._note_end(request)

    def service_actions(self) -> None:
        """End what has been there for too long; called twice a second."""
        now = time.monotonic()
        with self._lock:
            for request in [each for each, due in self._open.items() if due < now]:
                _hang_up(request)

    def _end_oldest(self) -> None:
        with self._lock:
            for request in [*self._open][:1]:
                _hang_up(request)

    def _note_end(self, request: Any) -> None:
        with self._lock:
            self._open.pop(request, None)
        self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore a client that has gone."""


def _hang_up(request: socket.socket) -> None:
    """Let the thread of a connection find that its client has gone."""
    with suppress(OSError):
        request.shutdown(socket.SHUT_RDWR)


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    server_version, sys_version = "streamgp", ""
    timeout = LONGEST_S

    def do_GET(self) -> None:
        from prometheus_client.exposition import choose_encoder

        metrics = self.server.metrics
        match self.path.partition("?")[0]:
            case "/metrics":
                encoder, kind = choose_encoder(self.headers.get("Accept", ""))
                self._send(200, encoder(self.server.registry), kind)
            case "/healthz":
                self._state(metrics.is_alive, "ok", "no cycle within a minute")
            case "/readyz":
                self._state(metrics.is_ready, "ok", "partitions are not restored")
            case _:
                self._send(404, b"expected /metrics, /healthz or /readyz\n")

    do_HEAD = do_GET  # noqa: N815

    def _state(self, is_so: bool, yes: str, no: str) -> None:
        self._send(200 if is_so else 503, f"{yes if is_so else no}\n".encode())

    def _send(self, status: int, body: bytes, kind: str = "text/plain; charset=utf-8") -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Keep the worker's log free of requests."""
