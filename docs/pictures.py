"""Draw the pictures of the documentation: `python docs/pictures.py [NAME...]`, by default all.

Drawings come from examples, commands and the results of the benchmark `compare`; pictures of the
page come from the demo in Chromium, which is found in the same way as by the tests. The other
pictures of measurements are drawn by their benchmarks, which take minutes to hours: for these the
program prints the commands. Needs the extras `test` and `plot`; each picture goes to its place in
`docs/images`, or into the folder `--to DIR`.

"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
IMAGES = ROOT / "docs" / "images"
LOG = ROOT / "streamgp" / "data" / "wifi_rooms.csv.gz"
STREAMGP = (sys.executable, "-m", "streamgp")
DESK = {"width": 1280, "height": 800}
PHONE = {"width": 390, "height": 844}
MEASURED = {
    "boosting.png": "boosting",
    "egp-default.svg": "egp",
    "egp-paper.svg": "egp",
    "isgp-random.png": "isgp",
    "isgp-sequential.png": "isgp",
    "location.png": "location",
    "pool.png": "pool",
}
"""The benchmark that draws a picture, by its name."""
ACTIVITIES = (
    "asleep badminton baking bathing boxing breakfast bus cafe canoeing car carpentry ceramics "
    "chatting chess childcare church cinema cleaning climbing coding concert cooking crafts "
    "cricket cycling dancing dentist desk dinner dishes dog doctor drawing dressing driving "
    "eating exam fencing ferry film fishing football gaming garden golf guitar gym hairdresser "
    "hiking hockey homework hospital ironing jogging judo karate kitchen laundry lecture library "
    "lunch mail market meeting museum music nap office opera painting park party phone photos "
    "piano picnic plane podcast post pottery praying pub puzzle radio reading running sailing "
    "swimming tennis"
)


def example(name: str, path: Path) -> None:
    """Run an example that draws a picture."""
    run([sys.executable, str(ROOT / "examples" / name), str(path)])


def tuning(path: Path) -> None:
    """Compare two configurations, as in docs/tuning.md."""
    with tempfile.TemporaryDirectory() as folder:
        default = subprocess.run([*STREAMGP, "init"], check=True, capture_output=True, text=True)
        long = "[learner]\nlength_scale = 4.76\nnoise_variance = 0.02\n"
        for name, text in (("default.toml", default.stdout), ("long.toml", long)):
            Path(folder, name).write_text(text)
        of = [str(LOG), "--label", "room", "--annotator", "error_rate=0.2"]
        files = ["default.toml", "long.toml", "--picture", str(path)]
        run([*STREAMGP, "tune", *of, "--compare", *files], cwd=folder)


def report(path: Path) -> None:
    """Take the upper half of the report in docs/report.md."""
    with tempfile.TemporaryDirectory() as folder, browser() as chromium:
        of = [str(LOG), "--label", "room", "--annotator", "error_rate=0.2,delay=3"]
        run([*STREAMGP, "replay", *of, "--report", "rooms.html"], cwd=folder)
        page = chromium.new_page(viewport={"width": 1000, "height": 1972})
        page.goto(f"file://{folder}/rooms.html")
        save(page.screenshot(), path)


def label(path: Path) -> None:
    """Take a question in a desktop window, after a few answers."""
    with demo(viewport=DESK) as page:
        for _ in range(9):
            answer(page)
        save(page.screenshot(), path)


def challenge(path: Path) -> None:
    """Take a challenge on a phone, in dark mode."""
    with demo(viewport=PHONE, color_scheme="dark") as page:
        be_challenged(page)
        save(page.screenshot(), path)


def moving(path: Path) -> None:
    """Take three answers, a wrong one that is challenged, and what follows its correction."""
    from PIL import Image

    shots: list[bytes] = []
    with demo(viewport={"width": 640, "height": 490}) as page:
        for _ in range(3):
            shots.append(page.screenshot())
            answer(page)
        be_challenged(page)
        shots.append(page.screenshot())
        card = shown(page)
        page.keyboard.press("c")
        wait_for_another(page, card)
        shots.append(page.screenshot())
    frames = [Image.open(BytesIO(shot)).convert("RGB").quantize(64) for shot in shots]
    often = {"save_all": True, "append_images": frames[1:], "loop": 0, "optimize": True}
    frames[0].save(path, duration=[1800, 1800, 1800, 4000, 3000], **often)


def signal(path: Path) -> None:
    """Take a question about a window of raw rows."""
    with demo("--raw", viewport={"width": 900, "height": 1130}) as page:
        save(page.screenshot(), path)


def many(path: Path) -> None:
    """Take a question with many labels on a phone, in dark mode."""
    sys.path.insert(0, str(ROOT))
    from tests.helpers.page_scene import PageScene, known, label_request

    with tempfile.TemporaryDirectory() as folder:
        scene = PageScene(Path(folder))
        at = time.time() - 40.0
        scene.write(*known(tuple(ACTIVITIES.split()), at=at), label_request(0, at=at))
        scene.start()
        try:
            with browser() as chromium:
                page = opened(chromium, scene.url, viewport=PHONE, color_scheme="dark")
                save(page.screenshot(), path)
        finally:
            scene.close()


def comparison(path: Path) -> None:
    """Draw the learners side by side, from the file of the benchmark that compares them."""
    sys.path.insert(0, str(ROOT))
    from benchmarks.comparison.compare.benchmark import draw

    rows = json.loads((ROOT / "benchmarks" / "results" / "compare.json").read_text())["rows"]
    by_share: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        if "learner" in row:
            by_share.setdefault(row["share"], []).append(row)
    draw(list(by_share.values()), path)


PICTURES: dict[str, Callable[[Path], None]] = {
    "compare.png": comparison,
    "page-challenge.png": challenge,
    "page-label.png": label,
    "page-many.png": many,
    "page-signal.png": signal,
    "page.gif": moving,
    "report.png": report,
    "skeptical-learning.png": partial(example, "draw_skeptical_learning.py"),
    "temporal.png": partial(example, "draw_temporal_filter.py"),
    "tuning.png": tuning,
    "windows.png": partial(example, "draw_windows.py"),
}


# --- the page


@contextmanager
def browser() -> Iterator[Any]:
    """Start Chromium without a window."""
    from playwright.sync_api import sync_playwright

    found = os.environ.get("STREAMGP_TEST_CHROMIUM") or shutil.which("chromium")
    if found is None:
        raise SystemExit("Error: no Chromium; name one in STREAMGP_TEST_CHROMIUM")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield started
        started.close()


@contextmanager
def demo(*options: str, **look: Any) -> Iterator[Any]:
    """Start the demo, and open its page at the first question."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    started = ["demo", "--page", *options, "--no-browser", "--as", "ann", "--bind", address]
    with subprocess.Popen(
        [*STREAMGP, *started], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()  # says where the page is, once it is up
            with browser() as chromium:
                yield opened(chromium, f"http://{address}", **look)
        finally:
            process.terminate()


def opened(chromium: Any, url: str, **look: Any) -> Any:
    """Open a page, and wait for a question."""
    page = chromium.new_page(locale="en-GB", reduced_motion="reduce", **look)
    page.set_default_timeout(120_000)
    page.goto(url)
    page.wait_for_selector("#card")
    page.wait_for_timeout(1000)  # the rest of the page appears a moment later
    return page


def shown(page: Any) -> str:
    """Return the name of the question that is shown."""
    return str(page.locator("#card").get_attribute("data-card"))


def wait_for_another(page: Any, card: str) -> None:
    """Wait for the question after one."""
    page.wait_for_selector(f'#card:not([data-card="{card}"])')
    page.wait_for_timeout(1000)


def answer(page: Any, *, wrongly: bool = False) -> None:
    """Answer a question with the true room shown on the card, or with another room."""
    card = shown(page)
    if page.locator("#card").get_attribute("data-kind") == "challenge":
        page.keyboard.press("c")
    else:
        rooms = ["bedroom", "hall", "kitchen", "study"]
        said = re.search(r"it was (\w+)", page.locator("#card .truth").inner_text())
        assert said is not None
        page.keyboard.press(str(1 + (rooms.index(said[1]) + wrongly) % len(rooms)))
    wait_for_another(page, card)


def be_challenged(page: Any) -> None:
    """Answer wrongly until an answer is challenged."""
    for _ in range(20):
        answer(page, wrongly=True)
        if page.locator("#card").get_attribute("data-kind") == "challenge":
            page.wait_for_timeout(6000)  # until the notice that a challenge comes first has gone
            return
    raise SystemExit("Error: twenty wrong answers and no challenge")


# --- files


def run(command: Sequence[str], **options: Any) -> None:
    """Run a program and discard its output."""
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, **options)


def save(shot: bytes, path: Path) -> None:
    """Write a screenshot with 128 colours: a third of the bytes, with no visible difference."""
    from PIL import Image

    Image.open(BytesIO(shot)).convert("RGB").quantize(128).save(path, optimize=True)


def main() -> None:
    """Draw the pictures that are named."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="such as page.gif")
    parser.add_argument("--to", type=Path, default=IMAGES, metavar="DIR", help="where to")
    arguments = parser.parse_args()
    arguments.to.mkdir(parents=True, exist_ok=True)
    for name in arguments.names or [*PICTURES, *MEASURED]:
        if name in PICTURES:
            PICTURES[name](arguments.to / name)
            print(f"{name} drawn")
        elif name in MEASURED:
            command = f"python -m benchmarks.{MEASURED[name]} --data DIR --pictures {arguments.to}"
            print(f"{name}: {command}")
        else:
            parser.error(f"{name!r} is none of {', '.join(sorted([*PICTURES, *MEASURED]))}")


if __name__ == "__main__":
    main()
