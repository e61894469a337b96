"""How long twenty annotators wait at the page, and its memory after ten thousand questions.

A page in a process of its own on the embedded broker, twenty invited annotators, each with a stream
of events open: one in a real browser, nineteen as HTTP clients. Together they answer five questions
per second, one of these in the browser. The browser's milliseconds run from a key press until the
next card is in the document, a client's are those of `POST /api/answers`, which returns the next
card; by then the answer is in the topic. Then the clients answer faster, and the resident memory of
the page is read from time to time.

Annotators, browser and page share the machine. Without playwright and Chromium (`apt-get install
chromium`), only the clients are measured.

"""

from __future__ import annotations

import http.client
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from itertools import count
from pathlib import Path
from statistics import quantiles
from typing import Any

from benchmarks._harness import Options, Outcome, Row, at_most, progress, run
from connectors.embedded.topics import EmbeddedTopics
from connectors.wire.outbound import Outbound
from streamgp.apps.page.invites import Invites
from streamgp.interactive import LabelledExample, LabelRequest

_ROOMS = ("bathroom", "bedroom", "den", "hall", "kitchen", "living room", "study")
_N_FEATURES = 20
_N_CLIENTS = 19
_PER_S = 5.0
_FASTER_PER_S = 25.0
_MAIN = "from streamgp.cli.main import main\nmain()"
_WATCH = """() => {
  window.took = [];
  let at = null;
  document.addEventListener("keydown", () => { at = performance.now(); }, true);
  new MutationObserver(() => {
    if (at !== null && document.getElementById("card")) {
      window.took.push(performance.now() - at);
      at = null;
    }
  }).observe(document.getElementById("main"), { childList: true });
}"""


def main(argv: list[str] | None = None) -> int:
    """Run the benchmark."""
    return run("page", measure, about=__doc__, argv=argv)


def measure(options: Options) -> Outcome:
    """Measure the wait, then the memory."""
    waiting_s, n_answers = (30.0, 1_000) if options.quick else (200.0, 10_000)
    load_before = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder, _deployment(Path(folder)) as deployment:
        clients = [_Client(deployment, f"ann{i}") for i in range(_N_CLIENTS)]
        deployment.ask(200)
        progress(f"{_PER_S:.0f} answers per second for {waiting_s:.0f} s")
        with _answering(deployment, clients, _PER_S, waiting_s, options.seed):
            pressed, skipped = _in_browser(deployment, time.monotonic() + waiting_s)
        answered = [ms for client in clients for ms in client.took_ms]
        load_then = os.getloadavg()[0]
        progress(f"{n_answers} answers, {_FASTER_PER_S:.0f} a second")
        seconds = n_answers / _FASTER_PER_S
        with _answering(deployment, clients, _FASTER_PER_S, seconds, options.seed + 1):
            memory = list(_memory(deployment, clients, seconds))
        deployment.done.set()
    waits = [_row("browser: key to next card", pressed)] if pressed else []
    waits.append(_row("client: answer to next card", answered))
    half = memory[len(memory) // 2]["MB"]
    return Outcome(
        rows=[*waits, *memory],
        acceptance=[
            at_most(f"ms, 95 % of the waits, {row['wait']}", row["95 % ms"], 150.0) for row in waits
        ]
        + [at_most("MB more after the second half of the answers", memory[-1]["MB"] - half, 8.0)],
        skipped=skipped,
        notes=[f"load of the machine before {load_before:.1f}, after the waits {load_then:.1f}"],
    )


def _row(wait: str, took_ms: list[float]) -> Row:
    cuts = quantiles(took_ms, n=100)
    return {
        "wait": wait,
        "n": len(took_ms),
        "median ms": cuts[49],
        "95 % ms": cuts[94],
        "most ms": max(took_ms),
    }


class _Deployment:
    """Topics with questions, and the page in a process of its own."""

    def __init__(self, folder: Path, port: int, pid: int, invites: Invites) -> None:
        self.port = port
        self.done = threading.Event()
        self._folder = folder
        self._pid = pid
        self._invites = invites
        self._lock = threading.Lock()
        self._n_asked = 0

    def ask(self, n: int) -> None:
        """Write `n` questions as a worker would."""
        rng = random.Random(self._n_asked)
        with self._lock:
            _write(self._folder, [_request(self._n_asked + i, rng) for i in range(n)])
            self._n_asked += n

    def cookie(self, name: str) -> str:
        """Return the cookie of an annotator."""
        return f"streamgp-{self.port}={self._invites.redeem(self._invites.invite(name))}"

    def resident_mb(self) -> float:
        """Return the resident memory of the page."""
        status = Path(f"/proc/{self._pid}/status").read_text(encoding="ascii")
        [kb] = [line.split()[1] for line in status.splitlines() if line.startswith("VmRSS")]
        return int(kb) / 1e3


@contextmanager
def _deployment(folder: Path) -> Iterator[_Deployment]:
    (folder / "w.toml").write_text(f'broker = "file://{folder}/topics"\n', encoding="utf-8")
    EmbeddedTopics(folder / "topics").create()
    _write(folder, [_known(n, label) for n, label in enumerate(10 * _ROOMS)])
    command = [sys.executable, "-c", _MAIN, "page", "w.toml", "--bind", "127.0.0.1:0"]
    with subprocess.Popen(
        [*command, "--invites", "invites.json"],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as page:
        try:
            assert page.stdout is not None
            port = int(page.stdout.readline().strip().rstrip("/").rpartition(":")[2])
            deployment = _Deployment(folder, port, page.pid, Invites(folder / "invites.json"))
            yield deployment
        finally:
            page.kill()


def _write(folder: Path, messages: list[Any]) -> None:
    outbound = Outbound("/streamgp/benchmark", keyed=True)
    with closing(EmbeddedTopics(folder / "topics")) as topics:
        client = topics.client(group="streamgp", instance="benchmark", max_records=10)
        client.poll(0.0)
        client.commit([outbound.message(message, 0) for message in messages])
        client.close()


def _features(rng: random.Random) -> dict[str, float]:
    return {f"feature {i}": rng.gauss(0.0, 1.0) for i in range(_N_FEATURES)}


def _request(n: int, rng: random.Random) -> LabelRequest:
    return LabelRequest(
        request_id=f"e{n}/label",
        event_id=f"e{n}",
        key="ann",
        x=_features(rng),
        reason="SkepticalAsk",
        score=1.0,
        threshold=0.0,
        requested_at=time.time(),
    )


def _known(n: int, label: str) -> LabelledExample:
    return LabelledExample(
        event_id=f"known{n}",
        key="ann",
        sequence=n + 1,
        x=_features(random.Random(n)),
        y=label,
        origin="asked",
        annotator="ann0",
        learned_at=time.time() - 3600.0,
    )


class _Client:
    """An annotator without a browser."""

    def __init__(self, deployment: _Deployment, name: str) -> None:
        self.took_ms: list[float] = []
        self.n_answered = 0
        self._port = deployment.port
        self._name = name
        self._cookie = deployment.cookie(name)
        self._card: str | None = None
        self._connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=60)
        listening = threading.Thread(target=self._listen, args=[deployment.done], daemon=True)
        listening.start()

    def _listen(self, done: threading.Event) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=60)
        with suppress(OSError, http.client.HTTPException), closing(connection):
            connection.request("GET", "/api/stream", headers={"Cookie": self._cookie})
            reply = connection.getresponse()
            while not done.is_set() and reply.readline():
                pass

    def _send(self, method: str, path: str, body: Any = None) -> Any:
        headers = {"Cookie": self._cookie}
        if body is not None:
            headers |= {
                "Origin": f"http://127.0.0.1:{self._port}",
                "X-Streamgp": "1",
                "Content-Type": "application/json",
            }
        data = None if body is None else json.dumps(body)
        self._connection.request(method, path, data, headers)
        reply = self._connection.getresponse()
        text = reply.read()
        return json.loads(text) if reply.status == 200 else None

    def answer(self, rng: random.Random) -> None:
        """Answer the current card, or ask for one."""
        if self._card is None:
            reply = self._send("GET", "/api/next")
            self._card = reply["card"]["id"] if reply and reply["card"] else None
            return
        body = {
            "card": self._card,
            "answer_id": f"{self._name}-{self.n_answered}",
            "action": "label",
            "label": rng.choice(_ROOMS),
        }
        start = time.perf_counter()
        reply = self._send("POST", "/api/answers", body)
        self._card = None
        if reply is not None:  # otherwise another annotator was faster, or the rate is too high
            self.took_ms.append(1e3 * (time.perf_counter() - start))
            self._card = reply["next"]["id"] if reply["next"] else None
        self.n_answered += 1


@contextmanager
def _answering(
    deployment: _Deployment, clients: list[_Client], per_s: float, seconds: float, seed: int
) -> Iterator[None]:
    """Let all clients answer for a while, and ask new questions; the browser answers besides."""
    end = time.monotonic() + seconds
    pause_s = len(clients) / (per_s - 1.0)

    def answer(client: _Client, number: int) -> None:
        rng = random.Random(1000 * seed + number)
        while time.monotonic() < end:
            start = time.monotonic()
            client.answer(rng)
            time.sleep(max(0.0, start + rng.uniform(0.5, 1.5) * pause_s - time.monotonic()))

    def ask() -> None:
        while time.monotonic() < end:
            deployment.ask(int(per_s))
            time.sleep(1.0)

    threads = [threading.Thread(target=ask)]
    threads += [threading.Thread(target=answer, args=each) for each in zip(clients, count())]
    for thread in threads:
        thread.start()
    yield
    for thread in threads:
        thread.join()


def _memory(deployment: _Deployment, clients: list[_Client], seconds: float) -> Iterator[Row]:
    """Yield the memory of the page eleven times, starting now."""
    before = sum(client.n_answered for client in clients)
    for step in range(11):
        n_answered = sum(client.n_answered for client in clients) - before
        yield {"answers": n_answered, "MB": deployment.resident_mb()}
        if step < 10:
            time.sleep(seconds / 10)


def _in_browser(deployment: _Deployment, end: float) -> tuple[list[float], list[str]]:
    chromium = os.environ.get("STREAMGP_TEST_CHROMIUM") or shutil.which("chromium")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        chromium = None
    if chromium is None:
        return [], ["the browser: needs playwright and chromium"]
    url = f"http://127.0.0.1:{deployment.port}"
    name, _, token = deployment.cookie("browser").partition("=")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        context = browser.new_context(locale="en-GB")
        context.add_cookies([{"name": name, "value": token, "url": url}])
        page = context.new_page()
        page.goto(url)
        page.locator("#card").wait_for()
        page.evaluate(_WATCH)
        while time.monotonic() < end:
            page.keyboard.press("3")
            page.wait_for_timeout(1000)
        took: list[float] = page.evaluate("window.took")
        browser.close()
    return took, []


if __name__ == "__main__":
    sys.exit(main())
