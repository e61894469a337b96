"""Rights on a real broker: those of the guide are enough, and what is said of those that lack."""

import json
import math
import re
from contextlib import closing
from pathlib import Path
from time import monotonic, time
from typing import get_args

import pytest
from click.testing import CliRunner

from connectors.annotation.open_questions import Order
from connectors.kafka.settings import Security
from connectors.kafka.topics import KafkaTopics
from connectors.memory import MemoryTopics
from connectors.topics import ALL_TOPICS, Outgoing, RefusedError
from streamgp.apps.annotate.session import SessionSettings, Subscription
from streamgp.apps.deployment.deployment import open_topics
from streamgp.cli.main import cli
from streamgp.config import load
from tests.helpers.documents import rows, section
from tests.helpers.kafka_cases import error_of, linked, numbered, opened, poll, write
from tests.helpers.worker_process import Process
from tests.kafka_broker import USERS

GUIDE = Path(__file__).parents[3] / "docs" / "deployment.md"
if not GUIDE.is_file():
    pytest.skip("docs/ is not beside the tests", allow_module_level=True)

SECURITY = section(GUIDE.read_text(encoding="utf-8"), "Security", until="## ")
STRANGER = Security(
    protocol="SASL_PLAINTEXT",
    mechanism="PLAIN",
    username="stranger",
    password=USERS["stranger"],
)


def rights():
    """Return for each program the operations that the guide gives it, by kind and name."""
    found = {}
    for who, reads, writes, on_group, besides in rows(SECURITY):
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
def guarded(own_broker):
    """A broker on which the user `stranger` has the rights that a test gives, and no others."""
    with closing(KafkaTopics(own_broker.servers, partitions=1, replication=1)) as topics:
        topics.create()
    return own_broker


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
        had = set(client.describe_acls(before)[0])
        client.create_acls(wanted)
        client.delete_acls(list(had - set(wanted)))
        until = monotonic() + 60.0
        while set(client.describe_acls(before)[0]) != set(wanted):
            assert monotonic() < until


def as_stranger(broker):
    return closing(KafkaTopics(broker.sasl_servers, security=STRANGER))


def test_who_may_do_nothing_is_told_what(own_broker, kafka_prefix):
    grant(own_broker, [])
    with opened(own_broker.servers, kafka_prefix):
        pass
    with opened(own_broker.sasl_servers, kafka_prefix, create=False, security=STRANGER) as topics:
        assert topics.problems() == [
            f"no right to see topic {kafka_prefix}{name}" for name in ALL_TOPICS
        ]
        for use, text in (
            (lambda: topics.reader(["state"]), "^no right to see topic .*state$"),
            (topics.n_partitions, "^no right to see topic .*events$"),
            (lambda: topics.n_members("g"), "^user 'stranger' has no right to describe group g at"),
            (lambda: topics.lags("g"), "^no right to see topic"),
            (
                lambda: topics.client(group="g", instance="a", max_records=1),
                "^user 'stranger' has no right to describe topics at|^topic .* is missing",
            ),
            (
                lambda: write(topics, *numbered("events", 1)),
                "^user 'stranger' has no right to take",
            ),
        ):
            error, _ = error_of(use)
            assert re.search(text, str(error)), error
            if "missing" not in str(error):  # to start again would not help
                assert isinstance(error, RefusedError), use


def test_rights_that_a_worker_lacks_are_named(own_broker, kafka_prefix):
    with opened(own_broker.servers, kafka_prefix):
        seen = [("TOPIC", kafka_prefix + name, "DESCRIBE") for name in ALL_TOPICS]
        read = [("TOPIC", kafka_prefix + name, "READ") for name in ("events", "consensus")]
        grant(own_broker, seen + read)
    with opened(own_broker.sasl_servers, kafka_prefix, create=False, security=STRANGER) as topics:
        assert topics.problems() == [
            f"no right to {rights} topic {kafka_prefix}{name}"
            for name, rights in (
                ("answers", "read"),
                ("predictions", "write"),
                ("requests", "write"),
                ("consensus", "write"),
                ("state", "read and write"),
                ("dead-letters", "write"),
            )
        ]


def record(topic):
    return Outgoing(topic=topic, partition=0, key=b"ann", value=None)


def work(topics):
    """Do what a worker does with topics."""
    assert topics.problems() == []
    assert topics.warnings() == []
    topics.check_writing("rooms")
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
    subscription = Subscription(topics, SessionSettings(annotator="ann", order=order))
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
            with pytest.raises(RefusedError, match="'stranger' has no right"):
                work(topics)
            if kind == "TRANSACTIONAL_ID":
                with pytest.raises(RefusedError, match="no right to prepare transactions at"):
                    topics.check_writing("rooms")


def test_a_user_who_may_write_nothing_is_told_so(guarded):
    """Such a producer gets no number from the broker, and is not asked for a topic at all."""
    grant(guarded, [("TOPIC", "answers", "READ")])
    with as_stranger(guarded) as topics:
        error, _ = error_of(lambda: write(topics, record("answers")))
    assert isinstance(error, RefusedError)
    assert str(error).startswith("user 'stranger' has no right to take records at ")


def test_a_right_that_is_taken_away_ends_an_idle_worker(guarded):
    """Without Describe on a topic, which comes with Write, a worker does not know whether it is."""
    unused = ("TOPIC", "dead-letters", "WRITE")
    grant(guarded, PROGRAMS["run"])
    with (
        opened(
            guarded.sasl_servers, "", create=False, security=STRANGER, timeouts={"look_s": 0.3}
        ) as topics,
        linked(topics, "rooms", leave=True) as link,
    ):
        grant(guarded, [right for right in PROGRAMS["run"] if right != unused])
        with pytest.raises(RefusedError, match=r"no right to .*dead-letters"):
            poll(link, math.inf)  # what other tests have left, and then nothing


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
