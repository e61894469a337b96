"""Carry out the Dockerfile without Docker, and try the result.

    python docker/rehearse.py

Every RUN and COPY is done in a clean folder that stands for the image's file system, with this
Python instead of the base image; paths of the image become paths in that folder. Then the entry
point, a worker and the health check run as in a container. Not tested: that the base image exists,
what it contains (it has a pip of its own), and what Docker itself does. Needs Linux, root (files
are given to the image's user) and a package index.

"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).parent
CONTEXT = HERE.parent
_ONE_DAY_S = 86400.0
_PATIENCE_S = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One instruction: RUN, COPY, ... and its arguments, with continued lines joined."""

    word: str
    rest: str


def steps(text: str) -> list[Step]:
    """Read a Dockerfile.

    Examples
    --------
    >>> steps("FROM a AS b\\n# why\\nRUN x && \\\\\\n    y\\n")[1]
    Step(word='RUN', rest='x && y')

    """
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
    pairs = [line.split(maxsplit=1) for line in joined.splitlines() if line.strip()]
    return [Step(word=word, rest=rest.strip()) for word, rest in pairs]


def words(text: str) -> list[str]:
    """Return the words of an instruction in JSON or shell form."""
    return list(json.loads(text)) if text.startswith("[") else ["/bin/sh", "-c", text]


@dataclass(slots=True, kw_only=True)
class Image:
    """The result of the steps so far: its files are in `root`, its Python is in `base`."""

    root: Path
    base: Path
    variables: dict[str, str] = field(default_factory=dict)
    folder: str = "/"
    user: str = "0:0"
    entry_point: list[str] = field(default_factory=list)
    health: list[str] = field(default_factory=list)

    def real(self, path: str) -> Path:
        """Return the real location of a path of the image."""
        return self.root / (Path(self.folder) / path).relative_to("/")

    def translated(self, text: str) -> str:
        """Return a text with the image's own paths replaced by their real locations."""
        own = r"(?<![\w./])/(?:opt|src|wheels|var/lib/streamgp)(?![\w-])"
        return re.sub(own, lambda found: f"{self.root}{found[0]}", text)

    def start(self, command: list[str], *, as_user: bool = False) -> subprocess.Popen[str]:
        """Start a command as in the image."""
        number, _, group = self.user.partition(":")
        who = {"user": int(number), "group": int(group), "extra_groups": []} if as_user else {}
        folder = self.real(".")
        folder.mkdir(parents=True, exist_ok=True)
        return subprocess.Popen(
            [self.translated(word) for word in command],
            cwd=folder,
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            **who,
        )

    def run(self, command: list[str], *, as_user: bool = False) -> tuple[int, str]:
        """Run a command; return its exit status and its output."""
        process = self.start(command, as_user=as_user)
        said, _ = process.communicate()
        return process.returncode, said

    def environment(self) -> Mapping[str, str]:
        """Return the variables of the image, and those that a package index may need."""
        base = f"{self.base}:/usr/local/bin:/usr/bin:/bin"
        index = re.compile(r"PIP_.*|SSL_CERT_.*|.*_proxy", re.IGNORECASE)
        given = {k: v for k, v in os.environ.items() if index.fullmatch(k)}
        own = {k: self.translated(v).replace("$PATH", base) for k, v in self.variables.items()}
        return given | {"PATH": base} | own

    def copy(self, rest: str, stages: Mapping[str, Path]) -> None:
        """Do a COPY, from the checkout or from an earlier stage."""
        *options, target = shlex.split(rest)
        source = CONTEXT
        names = []
        for word in options:
            if word.startswith("--from="):
                source = stages[word.removeprefix("--from=")]
            elif word.startswith("--"):
                raise ValueError(f"COPY {word} is not rehearsed")
            else:
                names.append(word.lstrip("/"))
        into = self.real(target)
        into.mkdir(parents=True, exist_ok=True)
        left_out = shutil.ignore_patterns("__pycache__") if source == CONTEXT else None
        for path in (source / name for name in names):
            if path.is_dir():
                shutil.copytree(path, into, symlinks=True, dirs_exist_ok=True, ignore=left_out)
            else:
                shutil.copy(path, into)


def build(instructions: list[Step], work: Path) -> Image:
    """Carry out the instructions, stage after stage, and return the last stage."""
    root, base = work / "root", work / "base"
    base.mkdir()
    (base / "python").symlink_to(sys._base_executable)
    stages: dict[str, Path] = {}
    image = Image(root=root, base=base)
    name = ""
    for step in instructions:
        print(f"{step.word} {step.rest[:150]}", flush=True)
        if step.word == "FROM":
            if root.exists():
                # All stages are built in the same place, so that programs installed in one run in
                # the next, as in the image.
                stages[name] = root.rename(work / f"stage-{len(stages)}")
            name = step.rest.partition(" AS ")[2]
            root.mkdir()
            image = Image(root=root, base=base)
        elif step.word == "ENV":
            pairs = (word.partition("=") for word in shlex.split(step.rest))
            image.variables |= {key: value for key, _, value in pairs}
        elif step.word == "WORKDIR":
            image.folder = step.rest
        elif step.word == "COPY":
            image.copy(step.rest, stages)
        elif step.word == "RUN":
            status, said = image.run(words(step.rest))
            if status != 0:
                sys.exit(f"it ended with {status}:\n{said}")
        elif step.word == "USER":
            image.user = step.rest
        elif step.word == "ENTRYPOINT":
            image.entry_point = words(step.rest)
        elif step.word == "HEALTHCHECK":
            image.health = words(step.rest.partition(" CMD ")[2] or step.rest.partition("CMD ")[2])
        elif step.word not in ("LABEL", "VOLUME", "STOPSIGNAL", "CMD"):
            raise ValueError(f"{step.word} is not rehearsed")
    return image


def try_out(image: Image) -> None:
    """Run the entry point, a worker and the health check."""
    try:
        as_user = image.run(["python", "-c", ""], as_user=True)[0] == 0
    except PermissionError:
        as_user = False
    print(f"as user {image.user}" if as_user else "as root: other users cannot reach this Python")

    def run(*command: str) -> tuple[int, str]:
        return image.run([*command], as_user=as_user)

    def health() -> int:
        return image.run(image.health, as_user=as_user)[0]

    status, said = run(*image.entry_point, "--version")
    expect("the entry point prints its version", said.startswith("streamgp "), said)
    status, said = run(
        "python", "-c", "import connectors.kafka.topics, crc32c, lz4.frame, snappy, zstandard"
    )
    expect("the Kafka client is installed", status == 0, said)
    state = image.real("/var/lib/streamgp")
    owner = f"{state.stat().st_uid}:{state.stat().st_gid}"
    expect(f"the state belongs to {image.user}", owner == image.user)
    status, said = run("/bin/sh", "-c", "ls -A; touch it && rm it")
    expect("it is empty and writable", (status, said) == (0, ""), said)
    expect("without a worker the image is unhealthy", health() != 0)
    work(image, health, as_user=as_user)
    found = [path.name for path in image.real("/opt").rglob("*") if path.name in ("gcc", "pip")]
    expect("the environment has no compiler and no pip", found == [])


def work(image: Image, health: Callable[[], int], *, as_user: bool) -> None:
    """Run a worker, on topics in a directory, as there is no broker here."""
    config = image.real("/etc/streamgp.toml")
    config.parent.mkdir()
    text = (HERE / "streamgp.toml").read_text(encoding="utf-8")
    config.write_text(image.translated(text), encoding="utf-8")
    topics = image.real("/var/lib/streamgp/topics")
    command = ["run", str(config), "--broker", f"file://{topics}", "--create-topics"]
    worker = image.start([*image.entry_point, *command], as_user=as_user)
    until = time.monotonic() + _PATIENCE_S
    while health() != 0 and worker.poll() is None and time.monotonic() < until:
        time.sleep(0.1)
    is_healthy = health() == 0
    worker.terminate()
    said, _ = worker.communicate()
    expect("a running worker is healthy", is_healthy, said)
    expect("SIGTERM ends it with status 0", worker.returncode == 0, said)
    then = time.time() - _ONE_DAY_S
    for alive in image.real("/var/lib/streamgp").glob("*/alive"):
        os.utime(alive, (then, then))
    expect("a worker that hangs is not healthy", health() != 0)


def expect(what: str, holds: bool, said: str = "") -> None:
    """Print that something holds, or exit."""
    if not holds:
        sys.exit(f"NOT SO: {what}\n{said}")
    print(f"{what}: yes")


def main() -> None:
    """Build and try."""
    if os.geteuid() != 0:
        sys.exit("needs root: the image's files are given to its user")
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        work.chmod(0o755)
        try_out(build(steps((HERE / "Dockerfile").read_text(encoding="utf-8")), work))


if __name__ == "__main__":
    main()
