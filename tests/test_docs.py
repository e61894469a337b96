"""The documents and the code say the same."""

import dataclasses
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest
from click.testing import CliRunner
from msgspec import inspect
from river import evaluate, metrics
from river.preprocessing import StandardScaler

import streamgp
from connectors import decode, encode
from connectors.broker import INPUT_TOPIC, OUTPUT_TOPIC
from connectors.jsonl import FILES
from connectors.tables.log_source import LogSource
from connectors.wire.codec import TYPES
from streamgp import datasets, isgp
from streamgp.base import Decision, Neighbour
from streamgp.cli.main import cli
from streamgp.config import load, settings
from streamgp.config.rules import RuleSection, section_class
from streamgp.config.validation import expected as expected_words
from streamgp.config.validation import shown
from streamgp.interactive.messages import Fault, Origin
from streamgp.query.registry import LEARNERS, rules
from streamgp.windows.extraction import FEATURE_SETS
from tests.helpers import exit_statuses
from tests.helpers.documents import rows, section

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
if not DOCS.is_dir():
    pytest.skip("docs/ is not beside the tests", allow_module_level=True)

MESSAGES = (DOCS / "messages.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("tag", TYPES)
def test_table_lists_the_fields_of_a_message_in_their_order(tag):
    fields = dataclasses.fields(TYPES[tag])
    text = section(MESSAGES, TYPES[tag].__name__)
    listed = rows(text)
    assert [name.strip("`") for name, _, _ in listed] == [field.name for field in fields]
    assert f"`{tag}`" in text


@pytest.mark.parametrize("tag", TYPES)
def test_table_says_what_a_field_is_when_left_out(tag):
    words = {"None": "null", "False": "false", "0": "0", "()": "none"}
    fields = dataclasses.fields(TYPES[tag])
    listed = [row[2] for row in rows(section(MESSAGES, TYPES[tag].__name__))]
    expected = [
        "*required*" if field.default is dataclasses.MISSING else words[repr(field.default)]
        for field in fields
    ]
    assert listed == expected


@pytest.mark.parametrize(
    ("heading", "words"),
    [
        ("Prediction", [field.name for field in dataclasses.fields(Decision)]),
        ("Challenge", [field.name for field in dataclasses.fields(Neighbour)]),
        ("LabelledExample", get_args(Origin)),
        ("Rejected", get_args(Fault)),
    ],
)
def test_words_inside_of_messages_are_explained(heading, words):
    text = section(MESSAGES, heading)
    assert [word for word in words if f"`{word}`" not in text] == []


def test_json_examples_are_messages_as_they_are_written():
    block = re.search(r"```json\n(.*?)```", MESSAGES, re.S)
    lines = block[1].splitlines()
    assert len(lines) > 5
    for line in lines:
        assert encode(decode(line.encode())).decode() == line


def test_topics_and_files_are_those_of_the_code():
    listed = rows(section(MESSAGES, "On the wire"))
    assert {row[0].strip("`") for row in listed} == set(TYPES)
    for row in listed:
        kind = TYPES[row[0].strip("`")]
        topics = [t for t in (OUTPUT_TOPIC.get(kind), INPUT_TOPIC.get(kind)) if t is not None]
        assert re.findall(r"`([a-z-]+)`", row[1]) == topics
        assert row[2:] == ([f"`{FILES[kind]}`"] if kind in FILES else [])


CONFIGURATION = (DOCS / "configuration.md").read_text(encoding="utf-8")
LOGS = (DOCS / "logs.md").read_text(encoding="utf-8")
TROUBLESHOOTING = (DOCS / "troubleshooting.md").read_text(encoding="utf-8")
SECTIONS = {
    "Top level": settings.WorkerConfig,
    "[learner]": settings.Learner,
    "[temporal]": settings.Temporal,
    "[drift_test]": settings.Drift,
    "[questions]": settings.Questions,
    "[people]": settings.People,
    "[annotator]": settings.Annotator,
    "[log]": settings.Log,
    "[windows]": settings.Windows,
    "[loop]": settings.Loop,
    "[broker]": settings.Broker,
    "[broker.security]": settings.Security,
    "[topics]": settings.Topics,
    "[worker]": settings.Worker,
    "[page]": settings.Page,
    "[observe]": settings.Observe,
}
RULES = {f"[{kind}]": kind for kind in ("query", "challenge", "review", "reservoir", "budget")}


def default_of(field: inspect.Field) -> str:
    if field.required:
        return "*required*"
    default = field.default
    if default is msgspec.NODEFAULT:
        default = field.default_factory() or "none"
    if isinstance(default, RuleSection):
        return shown(default.rule())
    if default == "none":
        return default
    if isinstance(field.default, tuple):
        return f"[{', '.join(map(shown, field.default))}]"
    return shown(field.default)


@pytest.mark.parametrize("heading", SECTIONS)
def test_configuration_lists_the_settings_of_a_section(heading):
    fields = inspect.type_info(SECTIONS[heading]).fields
    sections = {name.strip("[]") for name in [*SECTIONS, *RULES]}
    path = "" if heading == "Top level" else heading.strip("[]") + "."
    expected = [
        (field.encode_name, expected_words(field.type), default_of(field))
        for field in fields
        if path + field.encode_name not in sections
    ]
    listed = rows(section(CONFIGURATION, heading))
    words = {"*preset*": "None", "*off*": "None", "*the seed above*": "None"}
    assert [(k.strip("`"), allowed, words.get(d, d)) for k, allowed, d, _ in listed] == expected


def test_configuration_has_a_section_for_every_section_of_the_code():
    fields = {f.encode_name for f in inspect.type_info(settings.WorkerConfig).fields}
    in_code = {f"[{name}]" for name in fields if f"[{name}]" in {*SECTIONS, *RULES}}
    top_level = {row[0].strip("`") for row in rows(section(CONFIGURATION, "Top level"))}
    inner = {"[broker.security]"}
    assert in_code == {*SECTIONS, *RULES} - {"Top level"} - inner
    assert fields - top_level == {name.strip("[]") for name in in_code}


@pytest.mark.parametrize("heading", RULES)
def test_configuration_lists_the_rules_and_their_settings(heading):
    expected = {}
    for name in rules(RULES[heading]):
        kind = inspect.type_info(section_class(RULES[heading], name))
        settings_of_rule = [
            (field.encode_name, expected_words(field.type), default_of(field))
            for field in kind.fields
        ]
        expected[kind.tag] = settings_of_rule
    listed: dict[str, list[tuple[str, str, str]]] = {}
    for line in re.findall(r"^\|(.*)\|$", section(CONFIGURATION, heading), re.M)[2:]:
        rule, name, allowed, default, _ = (cell.strip().strip("`") for cell in line.split("|"))
        if rule:
            last = listed.setdefault(rule, [])
        if name:
            last.append((name, allowed, "None" if default == "*off*" else default))
    assert listed == expected


@pytest.mark.parametrize("name", ["gp", *LEARNERS])
def test_configuration_lists_the_learners(name):
    [row] = [row for row in rows(section(CONFIGURATION, "[learner]")) if row[0] == "`name`"]
    assert f'"{name}"' in row[3]


def test_configuration_examples_are_valid():
    replay, worker, *others = re.findall(r"```toml\n(.*?)```", CONFIGURATION, re.S)
    assert load.parse_worker(replay, source="example").log.label == "room"
    broker = load.parse_worker(worker, source="example").broker
    assert broker.url == "kafka://host-1:9092,host-2:9092"
    for other in others:
        load.parse_worker(other, source="example")


def test_logs_that_need_preparation_are_read_after_it(tmp_path, monkeypatch):
    pytest.importorskip("pandas")
    monkeypatch.chdir(tmp_path)
    times = ("01:30", "02:00", "02:30", "02:00", "02:30", "03:00")  # an hour occurs twice
    cells = [f"25.10.2026 {time}:00;1.480,5;1;normal" for time in times]
    cells[-1] = "25.10.2026 03:00:00;-;EG;normal"
    table = "\n".join(["Zeit;Wärme;Ebene;Zustand", *cells])
    Path("machine.csv").write_text(table, encoding="cp1252")
    lines = [
        {"id": f"e{n}", "ts": (1774000000 + n) * 1000, "acc": {"sd": 0.5}, "activity": "sit"}
        for n in (2, 1, 1)
    ]
    Path("phone.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")

    code, _ = re.findall(r"^```python\n(.*?)^```$", LOGS, re.M | re.S)
    exec(code, {})

    notes: list[str] = []
    machine = LogSource("machine-read.csv", label="Zustand", time="Zeit", notes=notes.append)
    events = [received.message for received in machine.poll()]
    known = {"Wärme": 1480.5, "Ebene": "Ebene 1"}
    assert [event.x for event in events] == [known] * 5 + [{"Ebene": "Ebene EG"}]
    start = events[0].occurred_at
    assert [event.occurred_at - start for event in events] == [1800.0 * n for n in range(6)]
    phone = LogSource("phone-read.jsonl", label="activity", time="ts", notes=notes.append)
    events = [received.message for received in phone.poll()]
    assert [event.occurred_at for event in events] == [1774000001.0, 1774000002.0]
    assert [event.x["acc.sd"] for event in events] == [0.5, 0.5]
    assert notes == [
        "features that are texts: Ebene (at least 2 different)",
        "features that are texts: id (at least 2 different)",
    ]


def test_an_hour_that_occurs_twice_is_found_for_each_key():
    pd = pytest.importorskip("pandas")
    clock = [
        f"25.10.2026 {time}" for time in ("01:30", "02:00", "02:30", "02:00", "02:30", "03:00")
    ]
    table = pd.DataFrame({"Zeit": clock, "Maschine": "a"})
    both = pd.concat([table, table.assign(Maschine="b")]).sort_index(
        kind="stable", ignore_index=True
    )
    local = pd.to_datetime(both["Zeit"], dayfirst=True)

    _, code = re.findall(r"^```python\n(.*?)^```$", LOGS, re.M | re.S)
    exec(code, {"table": both, "local": local})

    start = pd.Timestamp("2026-10-25T01:30+02:00")
    for _, times in both.groupby("Maschine")["Zeit"]:
        assert list(times) == [start + pd.Timedelta(minutes=30 * n) for n in range(6)]


MADE_A_LOG = {
    "several files": {"DIR/a.csv": "x,room\n1,hall\n", "DIR/b.csv": "x,room\n2,bath\n"},
    "the same": {"DIR/a.csv": "x,room\r\n1,hall\r\n", "DIR/b.csv": "x,room\r\n2,bath\r\n"},
    "no header": {"OLD": "1,hall,,,,,,,,\n2,bath,,,,,,,,\n"},
    "lines before": {"OLD": "Pump\n\n7\n\nx,room\n1,hall\n2,bath\n"},
    "times in": {"OLD": "t,x,room\n1772461140500000000,1,hall\n1772461141000000000,2,bath\n"},
    "no times": {"OLD": "x,room\r\n1,hall\r\n2,bath\r\n"},
    "rows out": {"OLD": "t,x,room\n1772461140.5,2,bath\n1772461140.25,1,hall\n"},
    "spaces": {"OLD": " x    room \n 1  hall\n22   bath \n"},
    "ARFF": {
        "OLD": "% a\n@Relation r\n@attribute x\tnumeric\n@ATTRIBUTE\t'the room' {hall, bath}\n"
        "@data\n1,hall\n% b\n2,bath\n"
    },
    "a JSON array": {"OLD": '[{"x": 1, "room": "hall"},\n{"x": 2, "room": "bath"}]'},
    "MQTT": {"OLD": 'home/pump {"x": 1, "room": "hall"}\nhome/pump {"x": 2, "room": "bath"}\n'},
    "Prometheus": {
        "OLD": '{"data": {"result": [{"metric": {"room": "hall"}, "values": [[9, "1"], [9, "2"]]},'
        '{"metric": {"room": "bath"}, "values": [[9, "3"]]}]}}'
    },
}


@pytest.mark.parametrize("what", MADE_A_LOG)
def test_the_commands_for_other_formats_make_a_log(tmp_path, what):
    [block] = re.findall(r"^```bash\n(.*?)^```$", LOGS, re.M | re.S)
    [command] = re.findall(rf"^# {what}[^\n]*\n((?:[^#\n][^\n]*\n)+)", block, re.M)
    if shutil.which(command.strip("(").split()[0]) is None:
        pytest.skip("the program is missing")
    for name, text in MADE_A_LOG[what].items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(text.encode())
    subprocess.run(["bash", "-c", command], cwd=tmp_path, check=True)
    label = {"no header": "c2", "ARFF": "the room"}.get(what, "room")
    log = LogSource(tmp_path / "NEW", label=label)
    events = [received.message for received in log.poll()]
    assert list(dict.fromkeys(event.truth for event in events)) == ["hall", "bath"]
    assert all(event.x for event in events)


def test_the_exit_statuses_of_a_worker_are_listed():
    text = section(TROUBLESHOOTING, "Exit status of a worker")
    table = re.findall(r"^\| (\d+) \|", text, re.M)
    assert [int(status) for status in table] == list(exit_statuses.OF_A_WORKER)


def test_the_files_that_a_replay_writes_are_listed():
    listed = {row[0].strip("`") for row in rows(section(LOGS, "What is written"))}
    assert listed == {*FILES.values(), "summary.json", "timing.json"}


PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("examples/*.md"), *DOCS.rglob("*.md")])


def anchors(path: Path) -> set[str]:
    """Return the anchors of the headings of a document, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", path.read_text(encoding="utf-8"), re.M)
    return {re.sub(r"[^\w\- ]", "", one.lower()).replace(" ", "-") for one in headings}


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_to_files_and_headings(path):
    text = path.read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)#]*)(?:#([^)]*))?\)", text)
    links += [(target, "") for target in re.findall(r'src="([^"]*)"', text)]
    for target, anchor in links:
        if "://" in target or target.startswith("mailto:"):
            continue
        there = path.parent / target if target else path
        assert there.exists(), target
        assert not anchor or anchor in anchors(there), f"{target}#{anchor}"


FOR_NEWCOMERS = [DOCS / "architecture.md", DOCS.parent / "CONTRIBUTING.md"]


@pytest.mark.parametrize("path", FOR_NEWCOMERS, ids=lambda path: path.name)
def test_files_that_are_named_to_newcomers_are_there(path):
    if not path.exists():
        pytest.skip(f"{path.name} is not beside the tests")
    text = path.read_text(encoding="utf-8")
    named = re.findall(r"`((?:streamgp|connectors|tests|docs)/[\w/.]+)`", text)
    assert len(named) > 10
    assert [name for name in named if not (DOCS.parent / name).exists()] == []
    # Beside a file named in full, others go without their folder.
    folders = {(DOCS.parent / name).parent for name in named}
    found = {each.name for folder in folders for each in folder.iterdir()}
    assert set(re.findall(r"`(\w+\.py)`", text)) <= found


@pytest.mark.parametrize("path", sorted((DOCS / "decisions").glob("*.md")), ids=lambda p: p.name)
def test_decisions_are_short(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 40


def test_comparison_on_the_page_about_tuning_is_what_is_printed(tmp_path, monkeypatch):
    text = (DOCS / "tuning.md").read_text(encoding="utf-8")
    [table] = re.findall(r"^default          .*\nlong .*\n", text, re.M)
    monkeypatch.chdir(tmp_path)
    log = Path(streamgp.__file__).parent / "data" / "wifi_rooms.csv.gz"
    Path("default.toml").write_text(CliRunner().invoke(cli, ["init"]).stdout, encoding="utf-8")
    Path("long.toml").write_text("[learner]\nlength_scale = 4.76\nnoise_variance = 0.02\n")
    options = ["--label", "room", "--annotator", "error_rate=0.2"]
    arguments = ["tune", str(log), *options, "--compare", "default.toml", "long.toml"]
    printed = CliRunner().invoke(cli, arguments).stdout.splitlines()[-2:]
    # The last column is a time.
    assert [row.split()[:-1] for row in printed] == [row.split()[:-1] for row in table.splitlines()]


def test_a_scaler_in_front_of_the_model_costs_what_two_pages_say():
    found = []
    for model in (StandardScaler() | isgp(seed=1), isgp(seed=1)):
        score = evaluate.progressive_val_score(datasets.WiFiRooms(), model, metrics.Accuracy())
        found.append(f"{score.get():.1%}".replace("%", " %"))
    page = " ".join((DOCS / "scaling.md").read_text(encoding="utf-8").split())
    assert (
        f"`StandardScaler() | isgp(seed=1)` is right in {found[0]} of the rooms, `isgp(seed=1)` in "
        f"{found[1]}."
    ) in page
    assert f"then only {found[0]} of the predictions" in (DOCS / "river.md").read_text("utf-8")


def test_tables_of_metrics_and_of_features_of_windows_are_complete():
    page = (DOCS / "metrics.md").read_text(encoding="utf-8")
    listed = {re.split(r"\W", row[0].strip("`"))[0] for row in rows(page)}
    assert set(streamgp.metrics.__all__) - listed == {"PredictionSets"}  # has a section of its own
    page = (DOCS / "windows.md").read_text(encoding="utf-8")
    names = {name for names in FEATURE_SETS.values() for name in names}
    unlisted = {name for name in names if not re.search(rf"[`.]{name}`", page)}
    assert unlisted == {"band_1_3", "band_3_6", "band_6_12"}  # between the first band and the last


def test_counts_below_the_example_of_metrics_are_those_of_its_run():
    text = (DOCS / "metrics.md").read_text(encoding="utf-8")
    [code, below] = re.search(
        r"^## Metrics of a conversation\n.*?```python\n(.*?)```.*?```text\n.*?```\n(.*?)\n\n`",
        text,
        re.M | re.S,
    ).groups()
    run: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(code, "metrics.md", "exec"), run)
    found = run["found"]
    assert found.challenge_recall == 1.0
    n_wrong = round(found.challenge_precision * found.n_challenges)
    n_kept = round(found.wrong_kept * found.n_asked)
    assert n_wrong == found.n_challenges - 1
    assert " ".join(below.split()) == (
        f"* It asked for a label in {found.n_asked} of {found.n_events} events. "
        f"* {found.n_challenges} answers were challenged, and {n_wrong} of these were wrong: one "
        "challenge was in vain. "
        f"* {n_wrong} answers were wrong, and all of them were challenged. First answers count, "
        "not those to a challenge. "
        f"* {n_kept} of the {found.n_asked} labels are wrong in the end. Of the {n_wrong} wrong "
        f"answers, {found.n_repaired} were corrected; for the other {n_wrong - found.n_repaired} "
        "the annotator was wrong again."
    )


EXAMPLES = [
    (path, code, output)
    for path in sorted(DOCS.rglob("*.md"))
    for code, output in re.findall(
        r"^```python\n((?:(?!```)[^\n]*\n)*)^```\n+```text\n(.*?)^```$",
        path.read_text(encoding="utf-8"),
        re.M | re.S,
    )
]


@pytest.mark.parametrize(
    ("path", "code", "output"), EXAMPLES, ids=[path.name for path, _, _ in EXAMPLES]
)
def test_example_that_is_followed_by_its_output_prints_it(path, code, output, capsys):
    exec(compile(code, path.name, "exec"), {"__name__": "__main__"})
    assert capsys.readouterr().out == output
