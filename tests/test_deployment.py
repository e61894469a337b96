"""The guide for deployments says what the code does."""

import configparser
import json
import re
import shlex
from contextlib import closing
from pathlib import Path
from time import monotonic, time
from typing import get_args

import pytest
from click.testing import CliRunner

import connectors
import streamgp
from connectors.annotation.open_questions import Order
from connectors.kafka.topics import KafkaTopics, Security
from connectors.memory import MemoryTopics
from connectors.topics import ALL_TOPICS, COMPACTED, BrokerError, Outgoing
from streamgp.apps import console
from streamgp.apps.annotate.session import SessionSettings, Subscription
from streamgp.apps.deployment.deployment import open_topics
from streamgp.cli.main import cli
from streamgp.config import load
from tests.helpers import exit_statuses
from tests.helpers.worker_process import Process
from tests.kafka_broker import USERS

GUIDE = Path(__file__).parents[1] / "docs" / "deployment.md"
if not GUIDE.is_file():
    pytest.skip("docs/ is not beside the tests", allow_module_level=True)

TEXT = GUIDE.read_text(encoding="utf-8")
SOURCES = [
    path.read_text(encoding="utf-8")
    for package in (streamgp, connectors)
    for path in Path(package.__file__).parent.rglob("*.py")
]


def section(heading):
    """Return what stands under a heading, up to the next one."""
    found = re.search(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", TEXT, re.M | re.S)
    assert found, f"no heading {heading!r}"
    return found[1]


def rows(text):
    """Return the cells of all tables in a text, without their heads."""
    lines = re.findall(r"^\| (.*) \|$", text, re.M)
    cells = [[cell.strip() for cell in line.split(" | ")] for line in lines]
    return [row for row in cells if row[0].startswith("`") or row[0].isdigit()]


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```$", TEXT, re.M | re.S)


def test_all_topics_are_listed_with_their_clean_up():
    listed = {row[0].strip("`"): row[3] for row in rows(section("Topics"))}
    assert listed == {name: "compact" if name in COMPACTED else "delete" for name in ALL_TOPICS}


def test_the_service_is_started_again_where_that_helps():
    [unit] = blocks("ini")
    parsed = configparser.ConfigParser(interpolation=None)
    parsed.optionxform = str
    parsed.read_string(unit)
    kept_down = {int(status) for status in parsed["Service"]["RestartPreventExitStatus"].split()}
    helped = {console.DONE, console.LOST_BROKER}
    assert kept_down == {s for s in exit_statuses.OF_A_WORKER if s < 128} - helped


def logged():
    """Return the events that a worker may log."""
    said = "\n".join(SOURCES)
    calls = re.findall(r"\bsay\(\s*(?:logging\.\w+|level),\s*\"([a-z-]+)\"", said)
    log = re.findall(r"_log\.(?:info|warning)\(\s*\"([a-z-]+)\"", said)
    return {*calls, *log, "library-warning"}


def test_every_event_of_the_log_is_explained():
    listed = rows(section("Logs"))
    assert {row[0].strip("`") for row in listed} == logged()
    assert {word for row in listed for word in row[1].split(", ")} == {"info", "warning", "error"}


def test_the_line_of_a_log_has_fields_that_exist():
    line = json.loads(next(block for block in blocks("json") if '"level"' in block))
    said = "\n".join(SOURCES)
    assert [name for name in line if f'"{name}"' not in said and f"{name}=" not in said] == []


@pytest.mark.parametrize("block", blocks("toml"))
def test_configurations_are_valid(block):
    assert load.parse_worker(block, source="the guide").broker is not None


COMMANDS = sorted(
    {
        line.removeprefix("$ ")
        for block in blocks("console")
        for line in block.splitlines()
        if line.startswith("streamgp ")
    }
    | set(re.findall(r"`(streamgp [a-z][^`]*)`", TEXT))
)


@pytest.mark.parametrize("line", COMMANDS)
def test_commands_exist_with_their_options(line):
    _, name, *words = shlex.split(line)
    command = cli.commands[name]
    known = {option for parameter in command.params for option in parameter.opts}
    assert [word for word in words if word.startswith("--") and word not in known] == []


# --- rights


def rights():
    """Return for each program the operations that the guide gives it, by kind and name."""
    found = {}
    for who, reads, writes, on_group, besides in rows(section("Security")):
        granted = [("TOPIC", name, "READ") for name in re.findall(r"`([a-z-]+)`", reads)]
        granted += [("TOPIC", name, "WRITE") for name in re.findall(r"`([a-z-]+)`", writes)]
        for described in re.findall(r"Describe on (`[a-z-]+`(?: and `[a-z-]+`)*)", besides):
            granted += [("TOPIC", name, "DESCRIBE") for name in described[1:-1].split("` and `")]
        if on_group != "none":
            granted.append(("GROUP", "rooms", on_group.upper()))
        found[who.strip("`").removeprefix("streamgp ")] = granted
    found["run"].append(("TRANSACTIONAL_ID", "rooms-", "WRITE"))
    return found


@pytest.fixture(scope="module")
def guarded(broker_of_ones_own):
    """A broker on which the user `stranger` has the rights that a test gives, and no others."""
    with broker_of_ones_own(security=True) as broker:
        with closing(KafkaTopics(broker.servers, partitions=1, replication=1)) as topics:
            topics.create()
        yield broker


def grant(broker, granted):
    """Give the stranger rights in the place of those it had, and wait until they are in force."""
    admin = pytest.importorskip("kafka.admin")
    kinds, allow, patterns = (
        admin.ResourceType,
        admin.ACLPermissionType,
        admin.ACLResourcePatternType,
    )
    everything = admin.ResourcePatternFilter(kinds.ANY, None, patterns.ANY)
    before = admin.ACLFilter("User:stranger", "*", admin.ACLOperation.ANY, allow.ANY, everything)
    wanted = []
    for kind, name, operation in granted:
        how = patterns.PREFIXED if name.endswith("-") else patterns.LITERAL
        resource = admin.ResourcePattern(kinds[kind], name, how)
        may = admin.ACLOperation[operation]
        wanted.append(admin.ACL("User:stranger", "*", may, allow.ALLOW, resource))
    with closing(admin.KafkaAdminClient(bootstrap_servers=broker.servers)) as client:
        client.delete_acls([before])
        client.create_acls(wanted)
        until = monotonic() + 60.0
        while set(client.describe_acls(before)[0]) != set(wanted):
            assert monotonic() < until


def as_stranger(broker):
    security = Security(
        protocol="SASL_PLAINTEXT",
        mechanism="PLAIN",
        username="stranger",
        password=USERS["stranger"],
    )
    return closing(KafkaTopics(broker.sasl_servers, security=security))


def record(topic):
    return Outgoing(topic=topic, partition=0, key=b"ann", value=None)


def work(topics):
    """Do what a worker does with topics."""
    assert topics.problems() == []
    with closing(topics.client(group="rooms", instance="one", max_records=10)) as link:
        until = monotonic() + 60.0
        while not link.assigned:
            assert monotonic() < until
            link.poll(0.5)
        list(link.history({0: {}}))
        outputs = [
            name for kind, name, right in rights()["run"] if (kind, right) == ("TOPIC", "WRITE")
        ]
        link.commit([record(name) for name in outputs])


def visit(topics, granted):
    """Read, write and ask what these rights allow."""
    read = [name for kind, name, right in granted if (kind, right) == ("TOPIC", "READ")]
    if read:
        with closing(topics.reader(read)) as reader:
            until = monotonic() + 60.0
            while not reader.caught_up:
                assert monotonic() < until
                reader.poll(0.5)
    with closing(topics.writer("test")) as writer:
        for kind, name, right in granted:
            if (kind, right) == ("TOPIC", "WRITE"):
                writer.send(record(name))
        writer.flush()
    if ("GROUP", "rooms", "DESCRIBE") in granted:
        topics.n_members("rooms")
    if {"events", "answers", "consensus"} <= set(read):
        topics.lags("rooms")


PROGRAMS = rights()


@pytest.mark.parametrize("who", PROGRAMS)
def test_rights_of_the_guide_are_enough(guarded, who):
    grant(guarded, PROGRAMS[who])
    with as_stranger(guarded) as topics:
        if who == "run":
            work(topics)
        else:
            visit(topics, PROGRAMS[who])


class Noted(MemoryTopics):
    """Topics that tell which of them were read."""

    def __init__(self):
        super().__init__(1)
        self.read = set()

    def reader(self, topics, **options):
        self.read.update(topics)
        return super().reader(topics, **options)


@pytest.mark.parametrize("order", get_args(Order))
def test_annotate_reads_no_topic_but_those_of_the_guide(order):
    topics = Noted()
    subscription = Subscription(topics, SessionSettings(annotator="ann", order=order), time)
    while subscription.is_behind:
        subscription.read_on(0.0)
    subscription.close()
    granted = {name for _, name, right in PROGRAMS["annotate"] if right == "READ"}
    assert topics.read == (granted if order == "useful" else granted - {"predictions"})


@pytest.mark.parametrize("missing", PROGRAMS["run"], ids=lambda right: " ".join(right))
def test_a_worker_that_lacks_one_of_its_rights_is_told_which(guarded, missing):
    grant(guarded, [right for right in PROGRAMS["run"] if right != missing])
    kind, name, operation = missing
    with as_stranger(guarded) as topics:
        if kind == "TOPIC":
            [problem] = topics.problems()
            # Without a second right to the topic it is not even seen.
            assert re.fullmatch(rf"no right to (see|{operation.lower()}) topic {name}", problem)
        else:
            with pytest.raises(BrokerError, match="'stranger' has no right"):
                work(topics)


@pytest.fixture(scope="module")
def taught(guarded, tmp_path_factory):
    """Return what calls a command as the stranger, a worker that has learned, and a folder."""
    path = tmp_path_factory.mktemp("taught")

    def configured(name, servers, prefix, more=""):
        file = path / f"{name}.toml"
        file.write_text(
            f'[broker]\nurl = "kafka://{servers}"\n{more}\n'
            f'[topics]\nprefix = "{prefix}"\npartitions = 1\nreplication = 1\n'
            f'[worker]\ngroup = "own-rooms"\nstate = "{path}/state"\nleave = true\n'
        )
        return file

    login = (
        '[broker.security]\nprotocol = "SASL_PLAINTEXT"\nmechanism = "PLAIN"\n'
        'username = "stranger"\npassword_env = "PASSWORD_OF_STRANGER"'
    )
    own = configured("own", guarded.servers, "own-")
    for config in (own, configured("new", guarded.servers, "new-")):
        with closing(open_topics(load.load_worker(config))) as topics:
            topics.create()
    with closing(open_topics(load.load_worker(own))) as topics, closing(topics.writer("t")) as out:
        for n in range(6):
            value = {"event_id": f"e{n}", "key": "bob" if n < 5 else "ann", "x": {"light": n}}
            out.send(input_of("events", value))
            value = {"event_id": f"e{n}", "key": value["key"], "y": "hall", "answer_id": f"a{n}"}
            out.send(input_of("answers", value | {"annotator": "eve", "answered_at": time()}))
    worker = Process(own)
    worker.wait_for("batch")
    strangers = {
        name: configured(f"{name}-stranger", guarded.sasl_servers, f"{name}-", login)
        for name in ("own", "new")
    }

    def call(command, *words, topics="own"):
        granted = [
            (kind, f"own-{name}" if kind == "GROUP" else f"{topics}-{name}", operation)
            for kind, name, operation in PROGRAMS[command]
        ]
        grant(guarded, granted)
        words = [command, str(strangers[topics]), *map(str, words)]
        return CliRunner().invoke(cli, words, env={"PASSWORD_OF_STRANGER": USERS["stranger"]})

    yield call, worker, path
    if worker.process.poll() is None:
        worker.process.kill()
        worker.end()


def input_of(topic, value):
    return Outgoing(
        topic=topic, partition=0, key=value["key"].encode(), value=json.dumps(value).encode()
    )


def test_rights_of_the_guide_are_enough_for_the_commands(taught):
    call, worker, path = taught
    new_learner = path / "new_learner.toml"
    new_learner.write_text('[learner]\nname = "river.naive_bayes.GaussianNB"\n')
    backup = path / "backup"

    def done(*words, **options):
        result = call(*words, **options)
        assert result.exit_code == 0, (words, result.output)
        return result.output

    done("watch", "--once", "--interval", "0.1")
    done("dead-letters", "list")
    assert "eve" in done("audit")
    assert done("labels").count(",eve,") == 6
    assert "2 learners" in done("backup", backup)
    assert "6 labels" in done("retract", "--annotator", "eve", "--dry-run")
    assert "6 labels" in done("retract", "--annotator", "eve", "--yes")
    done("retract", "--annotator", "eve", "--undo", "--yes")
    assert "forgot" in done("forget", "ann", "--yes")
    worker.process.terminate()
    assert worker.end()[0] == 0
    done("rebuild", "--learner", new_learner)
    assert "nothing is lost" in call("recover", "--yes").output
    done("rebuild", "--learner", new_learner, "--take-over", "--yes")
    assert "now start the workers" in done("restore", backup, "--yes", topics="new")
