"""The files in docker/ say what is true, and what they start exists."""

import csv
import importlib.util
import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
import tomllib
from collections import Counter
from contextlib import closing
from importlib import metadata
from pathlib import Path

import click
import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

import streamgp
from streamgp.apps.deployment.deployment import load_deployed, open_topics
from streamgp.apps.replay.demo_data import ROOM_NAMES
from streamgp.cli.main import cli
from streamgp.config.load import load_worker

ROOT = Path(__file__).parents[1]
DOCKER = ROOT / "docker"
if not DOCKER.is_dir():
    pytest.skip("docker/ is not beside the tests", allow_module_level=True)

CONFIG = DOCKER / "streamgp.toml"
COMPOSE = DOCKER / "compose.yaml"
BY_DIGEST = re.compile(r"[a-z/]+:v?[0-9][\w.-]*@sha256:[0-9a-f]{64}")


def module(name):
    """Import a program of docker/, which is no package."""
    spec = importlib.util.spec_from_file_location(name, DOCKER / f"{name}.py")
    loaded = importlib.util.module_from_spec(spec)
    sys.modules[name] = loaded  # where dataclasses look for it
    spec.loader.exec_module(loaded)
    return loaded


rehearse = module("rehearse")
rooms = module("rooms")
STEPS = rehearse.steps((DOCKER / "Dockerfile").read_text(encoding="utf-8"))
FLINK_STEPS = rehearse.steps((DOCKER / "flink.Dockerfile").read_text(encoding="utf-8"))


def all_of(word, steps=STEPS):
    return [step.rest for step in steps if step.word == word]


# --- the image


def test_both_stages_stand_on_one_python_named_by_version_and_digest():
    bases = [rest.partition(" AS ")[0] for rest in all_of("FROM")]
    assert len(bases) == 2
    assert len(set(bases)) == 1
    assert BY_DIGEST.fullmatch(bases[0])
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    version = re.search(r"python:([0-9.]+)-slim", bases[0])[1]
    assert version in SpecifierSet(project["requires-python"])


def test_the_image_runs_streamgp_as_an_unprivileged_user():
    assert all_of("ENTRYPOINT") == ['["streamgp"]']
    assert all_of("USER") == ["10001:10001"]
    assert all_of("STOPSIGNAL") == ["SIGTERM"]
    assert all_of("VOLUME") == ["/var/lib/streamgp"]
    assert "PYTHONUNBUFFERED=1" in " ".join(all_of("ENV"))


def test_the_label_has_the_version_of_the_package():
    labels = " ".join(all_of("LABEL"))
    assert f'image.version="{streamgp.__version__}"' in labels


@pytest.mark.parametrize("age_s", [0.0, 50.0, 90.0, None])
def test_a_worker_is_healthy_if_it_was_alive_within_the_last_minute(tmp_path, age_s):
    [check] = all_of("HEALTHCHECK")
    command = check.partition(" CMD ")[2].replace("/var/lib/streamgp", shlex.quote(str(tmp_path)))
    if age_s is not None:
        alive = tmp_path / "worker-1-0" / "alive"
        alive.parent.mkdir()
        alive.touch()
        os.utime(alive, (time.time() - age_s,) * 2)
    done = subprocess.run(["/bin/sh", "-c", command], check=False)
    assert (done.returncode == 0) == (age_s is not None and age_s < 60.0)


def test_the_context_holds_what_is_copied_from_it_and_little_else():
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    let_in = {line[1:] for line in ignored if line.startswith("!")}
    copies = all_of("COPY") + all_of("COPY", FLINK_STEPS)
    copied = {word for rest in copies if "--from" not in rest for word in rest.split()[:-1]}
    assert ignored[1] == "*"
    assert copied == let_in
    assert [name for name in copied if not (ROOT / name).exists()] == []


def pinned(name):
    """Return the versions that a requirements file asks for; every line must have a hash."""
    text = (DOCKER / name).read_text(encoding="utf-8")
    lines = re.sub(r"\\\n", " ", re.sub(r"(?m)^#.*\n", "", text)).splitlines()
    found = {}
    for line in lines:
        requirement, *hashes = line.split("--hash=sha256:")
        [spec] = (parsed := Requirement(requirement)).specifier
        assert spec.operator == "=="
        assert hashes
        found[canonicalize_name(parsed.name)] = Version(spec.version)
    return found


def brought_by(wanted):
    """Return what the extras of a requirement bring, as the installed package says."""
    texts = metadata.requires(wanted.name) or []
    return {
        canonicalize_name(each.name)
        for each in map(Requirement, texts)
        if each.marker and any(each.marker.evaluate({"extra": one}) for one in wanted.extras)
    }


def test_what_the_image_installs_is_what_the_package_asks_for():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    versions = pinned("requirements.txt")
    extras = project["project"]["optional-dependencies"]
    for text in (*project["project"]["dependencies"], *extras["page"], *extras["metrics"]):
        wanted = Requirement(text)
        assert versions[canonicalize_name(wanted.name)] in wanted.specifier
        # What is for another Python is not installed here, to be asked.
        if wanted.marker is None or wanted.marker.evaluate():
            assert brought_by(wanted) <= versions.keys()
    built = pinned("build-requirements.txt")
    for text in project["build-system"]["requires"]:
        wanted = Requirement(text)
        assert built[canonicalize_name(wanted.name)] in wanted.specifier


def test_the_image_of_flink_is_like_the_other_but_for_its_packages():
    for word in ("ENTRYPOINT", "USER", "STOPSIGNAL", "VOLUME"):
        assert all_of(word, FLINK_STEPS) == all_of(word)
    assert all_of("FROM", FLINK_STEPS) == all_of("FROM")[1:]
    labels = " ".join(all_of("LABEL", FLINK_STEPS))
    assert f'image.version="{streamgp.__version__}"' in labels
    made = " ".join(all_of("RUN", FLINK_STEPS))
    [user] = re.findall(r"useradd --uid (\d+)", made)  # PyFlink asks for its name
    assert all_of("USER", FLINK_STEPS) == [f"{user}:{user}"]
    assert made.index("mkdir -p /usr/share/man/man1") < made.index("openjdk")
    [path] = re.findall(r"bash docker/flink-environment.sh (\S+)", made)
    assert f"PATH={path}/bin:" in " ".join(all_of("ENV", FLINK_STEPS))


# --- the rehearsal


def test_steps_are_read_over_continued_lines_and_comments():
    text = 'FROM a AS b\nRUN x && \\\n    # why\n    y\nCMD ["z"]\n'
    assert [(step.word, step.rest) for step in rehearse.steps(text)] == [
        ("FROM", "a AS b"),
        ("RUN", "x && y"),
        ("CMD", '["z"]'),
    ]
    assert rehearse.words('["z", "1"]') == ["z", "1"]
    assert rehearse.words("z 1") == ["/bin/sh", "-c", "z 1"]


def test_paths_of_the_image_are_moved_and_those_of_the_machine_are_not(tmp_path):
    image = rehearse.Image(root=tmp_path, base=tmp_path)
    text = "/opt/x -d /srcs /usr/src /src; find /var/lib/streamgp /bin/sh"
    moved = f"{tmp_path}/opt/x -d /srcs /usr/src {tmp_path}/src; find {tmp_path}/var/lib/streamgp"
    assert image.translated(text) == f"{moved} /bin/sh"


# --- the composition


@pytest.fixture(scope="module")
def services():
    yaml = pytest.importorskip("yaml", reason="PyYAML reads compose.yaml")
    return yaml.safe_load(COMPOSE.read_text(encoding="utf-8"))["services"]


FOREIGN = {"kafka", "prometheus", "grafana"}
"""Services with an image of others."""


def mounts(service):
    return [text.split(":")[:2] for text in service.get("volumes", ())]


def started(services):
    """Return the arguments of streamgp for every service that starts it."""
    return {
        name: service["command"]
        for name, service in services.items()
        if name not in FOREIGN and service["command"]
    }


def test_compose_accepts_its_file():
    docker = shutil.which("docker")
    if (
        docker is None
        or subprocess.run([docker, "compose", "version"], capture_output=True).returncode
    ):
        pytest.skip("`docker compose` is not there; a daemon would not be needed")
    command = [docker, "compose", "-f", str(COMPOSE), "config", "--format", "json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "worker-2" in json.loads(done.stdout)["services"]


def test_images_are_our_own_or_named_by_digest(services):
    for name, service in services.items():
        if name in FOREIGN:
            assert BY_DIGEST.fullmatch(service["image"])
        else:
            image = "streamgp-flink" if name == "flink" else "streamgp"
            assert service["image"] == f"{image}:{streamgp.__version__}"


def test_each_image_is_built_once_and_asked_of_no_registry(services):
    built = {name for name, service in services.items() if "build" in service}
    assert built == {"topics", "flink"}
    for name, service in services.items():
        if name in built:
            assert service["pull_policy"] == "missing"
            build = service["build"]
            assert (COMPOSE.parent / build["context"]).resolve() == ROOT
            assert (ROOT / build["dockerfile"]).is_file()
        elif name not in FOREIGN:
            assert service["pull_policy"] == "never"


def started_by_shell(service, tmp_path, status):
    """Run what a service starts with a streamgp that prints its arguments and ends so."""
    said = tmp_path / "streamgp"
    said.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@"\nexit {status}\n', encoding="utf-8")
    said.chmod(0o755)
    command = [word.replace("$$", "$") for word in service["entrypoint"]] + service["command"]
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_every_start_of_the_feeder_sends_new_events(services, tmp_path):
    feeder = services["feeder"]
    done = started_by_shell(feeder, tmp_path, 75)
    *words, option, prefix = done.stdout.splitlines()
    assert words == feeder["command"]
    assert option == "--prefix"
    assert time.time() - int(prefix.removesuffix("-")) < 60.0
    assert done.returncode == 75


@pytest.mark.parametrize("status", [0, 1, 2, 75])
def test_what_waits_for_workers_does_not_keep_them_from_starting(services, tmp_path, status):
    done = started_by_shell(services["topics"], tmp_path, status)
    assert done.stdout.splitlines() == services["topics"]["command"]
    assert (done.returncode == 0) == (status <= 2)


def test_the_page_answers_under_the_name_that_prometheus_asks_for(services):
    yaml = pytest.importorskip("yaml", reason="PyYAML reads prometheus.yml")
    jobs = yaml.safe_load((DOCKER / "observe" / "prometheus.yml").read_text(encoding="utf-8"))
    asked = {job["job_name"]: job["static_configs"][0]["targets"] for job in jobs["scrape_configs"]}
    words = services["page"]["command"]
    port = words[words.index("--bind") + 1].rpartition(":")[2]
    assert asked["streamgp-page"] == [f"{words[words.index('--host') + 1]}:{port}"]
    assert services.keys() >= {
        target.partition(":")[0] for each in asked.values() for target in each
    }


def test_the_check_of_the_broker_asks_a_port_that_it_serves(services):
    kafka = services["kafka"]
    shell, option, command = kafka["healthcheck"]["test"][1:]
    [address] = re.findall(r"/dev/tcp/(\S+)", command)
    assert (
        f"INSIDE://{address.replace('/', ':')}"
        in kafka["environment"]["KAFKA_ADVERTISED_LISTENERS"]
    )
    bash = shutil.which(shell)
    if bash is None:
        pytest.skip("there is no bash")
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        port = server.getsockname()[1]
        tried = command.replace(address, f"127.0.0.1/{port}")
        assert subprocess.run([bash, option, tried], check=False).returncode == 0
    assert subprocess.run([bash, option, tried], capture_output=True).returncode != 0


def test_the_broker_is_the_one_of_the_tests(services):
    pom = (ROOT / "tests" / "kafka_pom.xml").read_text(encoding="utf-8")
    version = re.search(r"<kafka\.version>(.*?)<", pom)[1]
    assert services["kafka"]["image"].startswith(f"apache/kafka:{version}@")


def test_everything_but_the_broker_runs_without_rights_on_a_root_that_is_read_only(services):
    for name, service in services.items():
        if name != "kafka":
            assert service["read_only"] is True
            assert service["cap_drop"] == ["ALL"]
            assert service["init"] is True


def test_what_a_service_waits_for_is_there_and_can_come_true(services):
    for service in services.values():
        for other, wait in service.get("depends_on", {}).items():
            if wait["condition"] == "service_healthy":
                assert "test" in services[other]["healthcheck"]
            else:
                assert wait["condition"] == "service_completed_successfully"
                assert "restart" not in services[other]


def test_mounts_come_from_files_that_are_there_or_volumes_that_are_declared(services):
    text = COMPOSE.read_text(encoding="utf-8")
    declared = set(re.findall(r"^  ([\w-]+):$", text[text.index("\nvolumes:") :], re.M))
    for service in services.values():
        for source, _ in mounts(service):
            assert (DOCKER / source).is_file() if source.startswith("./") else source in declared


def test_workers_share_neither_their_name_nor_their_state(services):
    workers = [services[name] for name, words in started(services).items() if words[0] == "run"]
    assert len(workers) == 2
    state = load_worker(CONFIG).worker.state
    assert all_of("VOLUME") == [state]
    volumes = [source for worker in workers for source, to in mounts(worker) if to == state]
    assert len(set(volumes)) == 2
    assert len({worker["hostname"] for worker in workers}) == 2
    assert load_worker(CONFIG).worker.instance is None  # so that it follows from the host's name


def test_flink_takes_the_place_of_the_workers_and_is_not_started_beside_them(services):
    flink = services["flink"]
    assert flink["profiles"] == ["flink"]
    assert mounts(flink)[1][1] == load_worker(CONFIG).worker.state
    text = COMPOSE.read_text(encoding="utf-8")
    [named] = re.findall(r"up --build (flink .*)", text)
    wanted, todo = set(), named.split()
    while todo:
        wanted.add(name := todo.pop())
        todo += services[name].get("depends_on", {})
    assert not wanted & {"worker-1", "worker-2"}
    assert {"kafka", "topics", "rooms", "flink"} <= wanted


def test_the_configuration_names_a_listener_of_the_broker(services):
    config = load_worker(CONFIG)
    listeners = services["kafka"]["environment"]["KAFKA_ADVERTISED_LISTENERS"]
    assert config.broker.url.removeprefix("kafka://") in [
        listener.partition("://")[2] for listener in listeners.split(",")
    ]
    assert config.topics.replication == 1


def test_every_command_exists_with_its_options(services, tmp_path):
    rooms.main(str(tmp_path / "rooms.csv"))
    commands = started(services)
    assert {arguments[0] for arguments in commands.values()} == {
        "check", "run", "flink", "annotate", "page", "invite", "send", "watch"
    }  # fmt: skip
    for name, arguments in commands.items():
        places = {to: str(DOCKER / source) for source, to in mounts(services[name])}
        places |= {"/var/lib/streamgp/rooms.csv": str(tmp_path / "rooms.csv")}
        found = [places.get(word, word) for word in arguments]
        parent = click.Context(cli, info_name="streamgp")
        _, command, rest = cli.resolve_command(parent, found)
        with command.make_context(arguments[0], rest, parent=parent):
            pass


# --- the log that is fed


def test_four_phones_go_through_four_rooms_and_not_into_the_future(tmp_path, capsys, services):
    rooms.main(str(tmp_path / "rooms.csv"))
    assert "2000 readings of 4 phones" in capsys.readouterr().out
    with (tmp_path / "rooms.csv").open(encoding="utf-8") as file:
        table = list(csv.DictReader(file))
    assert {row["room"] for row in table} == set(ROOM_NAMES)
    for phone in rooms.PHONES:
        assert len([row for row in table if row["phone"] == phone]) == 500
    times = [float(row["time"]) for row in table]
    assert times == sorted(times)
    assert times[-1] <= time.time()
    named = [word.partition("=")[2] for word in services["feeder"]["command"] if "=" in word]
    assert set(named[:3]) <= table[0].keys()


def test_two_workers_have_two_phones_each():
    partitioner = pytest.importorskip("kafka.partitioner.default")
    homes = [(partitioner.murmur2(name.encode()) & 0x7FFFFFFF) % 4 for name in rooms.PHONES]
    assert sorted(home // 2 for home in homes) == [0, 0, 1, 1]


# --- all of it


def test_what_compose_starts_works_together(services, kafka, kafka_prefix, tmp_path):
    rooms.main(str(tmp_path / "rooms.csv"))
    n_rows = 600
    log = (tmp_path / "rooms.csv").read_text(encoding="utf-8").splitlines(keepends=True)
    (tmp_path / "rooms.csv").write_text("".join(log[: 1 + n_rows]), encoding="utf-8")
    config = tmp_path / "streamgp.toml"
    text = CONFIG.read_text(encoding="utf-8")
    for old, new in (
        ("kafka:19092", kafka),
        ("[topics]", f'[topics]\nprefix = "{kafka_prefix}"'),
        ('"rooms"', f'"{kafka_prefix}rooms"'),
        ("/var/lib/streamgp", str(tmp_path / "state")),
    ):
        assert old in text
        text = text.replace(old, new)
    config.write_text(text, encoding="utf-8")
    places = {
        "/etc/streamgp/streamgp.toml": str(config),
        "/var/lib/streamgp/rooms.csv": str(tmp_path / "rooms.csv"),
        "--speed=60": "--speed=6000",
        "0.0.0.0:9464": "127.0.0.1:0",
    }

    def start(name):
        words = [places.get(word, word) for word in services[name]["command"]]
        with (tmp_path / f"{name}.log").open("w") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "streamgp", *words],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=tmp_path,
                env={**os.environ, "PYTHONPATH": str(Path(streamgp.__file__).parents[1])},
            )

    assert start("topics").wait(60.0) == 0
    lasting = {name: start(name) for name in ("worker-1", "worker-2", "annotator")}
    try:
        assert start("feeder").wait(60.0) == 0
        seen = Counter()
        by_phone = Counter()
        until = time.monotonic() + 60.0
        with closing(open_topics(load_deployed(config))) as topics:
            names = ("predictions", "requests", "answers", "consensus", "dead-letters")
            reader = topics.reader(names)
            while seen["predictions"] < n_rows or seen["consensus"] < 60:
                assert time.monotonic() < until, seen
                for record in reader.poll(1.0):
                    seen[record.topic] += 1
                    if record.topic == "predictions":
                        by_phone[record.key.decode()] += 1
            reader.close()
        assert by_phone == dict.fromkeys(rooms.PHONES, n_rows // 4)
        assert seen["answers"] >= 60
        assert seen["dead-letters"] == 0
    finally:
        for process in lasting.values():
            process.send_signal(signal.SIGTERM)
        ends = {name: process.wait(60.0) for name, process in lasting.items()}
    assert {ends["worker-1"], ends["worker-2"]} == {0}


# --- Kubernetes


@pytest.fixture(scope="module")
def objects():
    yaml = pytest.importorskip("yaml", reason="PyYAML reads kubernetes.yaml")
    text = (DOCKER / "kubernetes.yaml").read_text(encoding="utf-8")
    return {(each["kind"], each["metadata"]["name"]): each for each in yaml.safe_load_all(text)}


@pytest.fixture(params=["worker", "page"])
def stateful_set(objects, request):
    return objects["StatefulSet", request.param]


def pod_of(pods):
    pod = pods["spec"]["template"]["spec"]
    [container] = pod["containers"]
    return pod, container


def options_of(pods, directory):
    """Return the parameters with which the command of a pod starts, its configuration in place."""
    pod, container = pod_of(pods)
    assert container["image"].endswith(f"/streamgp:{streamgp.__version__}")
    assert all_of("USER") == ["{runAsUser}:{runAsGroup}".format(**pod["securityContext"])]
    places = {each["name"]: each["mountPath"] for each in container["volumeMounts"]}
    arguments = [word.replace(places["config"], str(directory)) for word in container["args"]]
    parent = click.Context(cli, info_name="streamgp")
    _, command, rest = cli.resolve_command(parent, arguments)
    with command.make_context(arguments[0], rest, parent=parent) as context:
        return context.params


@pytest.fixture
def mapped(objects, tmp_path):
    for name, text in objects["ConfigMap", "streamgp"]["data"].items():
        (tmp_path / name).write_text(text)
    return tmp_path


def test_pods_start_with_what_is_there(stateful_set, mapped):
    pod, container = pod_of(stateful_set)
    config = load_worker(mapped / "worker.toml")
    assert config.worker.instance is None  # so that it follows from the pod's name
    [claim] = stateful_set["spec"]["volumeClaimTemplates"]
    volumes = {claim["metadata"]["name"], *(each["name"] for each in pod["volumes"])}
    places = {each["mountPath"]: each["name"] for each in container["volumeMounts"]}
    assert set(places.values()) == volumes
    assert places[config.worker.state] == claim["metadata"]["name"]
    options = options_of(stateful_set, mapped)
    address = options["observe"] if "observe" in options else options["bind"]
    [port] = container["ports"]
    assert str(address).endswith(f":{port['containerPort']}")
    probes = [each for name, each in container.items() if name.endswith("Probe")]
    assert {each["httpGet"]["port"] for each in probes} == {port["name"]}
    assert {each["httpGet"]["path"] for each in probes} <= {"/healthz", "/readyz"}


def test_topics_are_made_once_and_for_all_workers(objects, mapped):
    job = objects["Job", "topics"]
    assert options_of(job, mapped)["create_topics"]
    assert not options_of(objects["StatefulSet", "worker"], mapped)["create_topics"]


@pytest.mark.parametrize("status", [0, 1, 2, 75])
def test_the_job_is_done_once_nothing_is_wrong(objects, tmp_path, status):
    """Something is while the broker cannot be reached, and then there are no topics."""
    job = objects["Job", "topics"]
    pod, container = pod_of(job)
    assert pod["restartPolicy"] == "OnFailure"
    assert job["spec"]["backoffLimit"] > 1000  # days, at five minutes between two tries
    service = {"entrypoint": container["command"], "command": container["args"]}
    done = started_by_shell(service, tmp_path, status)
    assert done.stdout.splitlines() == service["command"]
    assert (done.returncode == 0) == (status <= 1)


def test_services_find_their_pods(objects, stateful_set):
    name, spec = stateful_set["metadata"]["name"], stateful_set["spec"]
    labels = spec["template"]["metadata"]["labels"]
    service = objects["Service", spec["serviceName"]]["spec"]
    assert spec["selector"]["matchLabels"] == labels == service["selector"]
    assert spec["serviceName"] == name
    [port], [of_pod] = service["ports"], pod_of(stateful_set)[1]["ports"]
    assert port.get("targetPort", port["port"]) in of_pod.values()


# --- with a daemon


def test_a_worker_in_a_container_is_healthy_and_ends_at_sigterm():
    docker = shutil.which("docker") or pytest.skip("there is no docker")

    def run(*words):
        done = subprocess.run([docker, *words], capture_output=True, text=True, check=False)
        return done.returncode, done.stdout.strip()

    image = f"streamgp:{streamgp.__version__}"
    if run("image", "inspect", image)[0] != 0:
        pytest.skip(f"there is no daemon that has the image {image}")
    hardened = ("--init", "--read-only", "--tmpfs=/tmp", "--cap-drop=ALL", "--network=none")
    config = f"--volume={CONFIG}:/etc/streamgp.toml:ro"
    topics = ("--broker=file:///var/lib/streamgp/topics", "--create-topics")
    command = (image, "run", "/etc/streamgp.toml", *topics)
    status, name = run("run", "--detach", "--health-interval=1s", *hardened, config, *command)
    assert status == 0
    try:
        until = time.monotonic() + 60.0
        while run("inspect", "--format={{.State.Health.Status}}", name)[1] != "healthy":
            assert time.monotonic() < until, run("logs", name)
            time.sleep(0.2)
        run("stop", name)
        assert run("inspect", "--format={{.State.ExitCode}}", name) == (0, "0")
    finally:
        run("rm", "--force", "--volumes", name)
