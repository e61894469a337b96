"""The text of configuration files: of those that `streamgp init` prints, and of any configuration.

In the former, settings appear with their values; those that are off by default appear as
`#name = example`, so that removing the `#` gives a valid file. Other comments begin with `# `.
Descriptions of rules and learners are where these are registered, in `streamgp.query.registry`.
The short files hold the settings that are most often changed: those named in `_SHORT`, with what
stands in the same paragraph.

"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from textwrap import fill
from typing import Any

import msgspec

from streamgp.base import Preset, Target
from streamgp.config.settings import Annotator, Config, People, Topics, Worker, resolved
from streamgp.config.validation import shown
from streamgp.query.registry import LEARNERS, Kind, rules

_REPLAY_HEAD = """\
# Configuration of streamgp, read by `streamgp replay LOG --config FILE`.
# Every setting may be left out; the values below are the defaults. Settings that begin
# with `#` are off: remove the `#` to use them. The command line overrides the file.
{more}
"""

_TOP = """\
# Where settings that are left out get their values: "default", or "paper" (the rules and numbers
# of the ISGP paper, on unscaled features).
preset = {preset}

# What is predicted: "label" (names of classes) or "number". Some settings below apply to only one
# of the two: `streamgp init --target number` prints those for numbers.
target = {target}

# Seed of all random draws: the same seed and log give the same run.
seed = {seed}

# Features are scaled by their mean and standard deviation over this many first events. 0: not
# scaled at all.
warm_up = {warm_up}

# Whether features are also clipped at 3 standard deviations and, after 2, 4, 8, ... times as many
# events, scaled again and weighed by the labels. "recent": after every warm_up events, by recent
# measurements.
rescale = {rescale}

"""

_RULES = """\
[learner]
# The learner. "gp", a Gaussian process, has the settings below; other learners have theirs in a
# section [learner.options] instead:
{learners}
# or any River classifier or regressor by its path, for example "river.naive_bayes.GaussianNB", or
# one of your own, "module:name": streamgp runs that module. For "gp", [learner.options] can hold
# kernel = "streamgp.kernels:Matern52", or the name of what makes another kernel.
name = {name}
# How far the influence of a labelled example reaches, in units of the scaled features. Without it:
# grows with the square root of the number of features.
{length_scale}
# How much a single label may be off (labels count as 0 and 1); larger values are more skeptical.
# For numbers, a share of their variance.
noise_variance = {noise_variance}
# How many points the learner keeps. It is exact up to this many labelled examples; from then on,
# its speed and size stay constant. "all" keeps every example. For a world that changes all the
# time, use window = 200 instead: it keeps only the latest 200 examples.
max_points = {max_points}
# Whether the learner finds length scale and noise by itself, starting from the two above, whenever
# the number of its examples has doubled; the work is spread over the examples that follow.
learn_hyperparameters = {learn_hyperparameters}
# Whether the learner forgets all examples when its predictions become wrong more often than
# before: for a world that changes at times. For labels.
drift = {drift}

[temporal]
# Whether predictions take the beliefs about earlier events into account: for labels of events that
# follow each other in time. Questions and challenges do not depend on it.
enabled = {temporal}

[drift_test]
# Whether to test for concept drift: some events of which the learner is sure are asked about, more
# while the answers are surprising; after a change it forgets what is outdated. For labels.
enabled = {drift_test}
# Least probability of asking about an event, after the first 2000, of which more are asked about;
# 0 to test only labels that are there anyway.
at_least = {drift_at_least}
# Mean number of labels between false alarms, if the learner is as often wrong as it says.
run_length = {drift_run_length}

{query_section}
# When to ask for a label: the query strategy. The rules, and their settings:
{queries}
# "variance", "kl" and "deterministic" go with the budgets "rate" and "adaptive"; the last two
# compare the experts of learner.name = "ensemble".
{number_queries}
# A rule of your own: rule = "module:name", and its settings; streamgp runs that module.
{query}

[challenge]
# When to ask again because a given label is probably wrong. The rules, and their settings:
{challenges}
{number_challenges}
{challenge}

[review]
# When to doubt a label that was learned earlier. The rule besides "never", and its settings:
{reviews}
# A section [review.budget], with the rules of [budget], limits these challenges.
# Without this section, numbers are reviewed by "leave_one_out" if learner.name = "gp" and new
# ones are challenged.
{review}

[reservoir]
# When to ask about an earlier event that has no label. The other rule, and its settings:
{reservoirs}
# Use it to label a whole log well; predictions of new events are better without it.
# A section [reservoir.budget], with the rules of [budget], limits these questions.
rule = "never"

{budget_section}
# How many labels may be asked for; challenges do not count. The rules besides "unlimited", and
# their settings:
{budgets}
# gives_back = true: a question that was never answered does not count.
# Without this section, without [query] and with no limit in [questions], numbers are asked for at a
# rate of 0.1.
{budget}

[questions]
# How many labels may be asked for per key within any 24 hours and within any hour. Questions are
# spread evenly and spent on the most doubtful events: [query] then decides what is doubtful, but
# no longer how much is asked.
#per_day = 30
#per_hour = 5
# How many questions of each key come first, on top of per_day, wherever [query] asks. Labels teach
# most then: as many as per_day are recommended, where one day may have twice as many questions.
#at_start = 30
# How many questions per key may be open at a time. Beyond that, a question replaces the least
# useful open one or is not asked; questions whose answer has become clear are withdrawn.
#open_at_most = 20
# In which order annotators get label requests; challenges come first. "useful": the highest score
# first, spread over the predicted classes; or "newest" or "oldest" first.
#order = "useful"
# true: learn at which hours questions are answered before they expire, and avoid the other hours.
#availability = true
# Which share of answered questions is also put to a second annotator, who is not told the first
# answer, and which share is put to the same annotator again later. For labels.
#overlap = 0.1
#repeat = 0.05

[total_budget]
# If every key has its own learner: how many labels may be asked for in total, on top of what
# [budget] allows each key. The rules are the same.
rule = "unlimited"

"""

_ANNOTATOR = """\
[annotator]
# The simulated annotator, who reads the answers from the log's label column. To simulate several,
# replace this section by one for each: [annotators.ann], [annotators.bob].
# Share of wrong answers, seconds until an answer comes, share of unanswered requests.
error_rate = {error_rate}
delay = {delay}
decline_rate = {decline_rate}
# true: a challenged annotator always repeats the first answer.
stubborn = {stubborn}
# How much each question adds to the share of wrong answers, and the seconds after which half of
# that has faded. 0.0: never tired.
tiring_rate = {tiring_rate}
half_life_s = {half_life_s}
# For an annotator who tires: the median seconds that an answer takes when rested, how much each
# question adds (in units of that median), and how much the times vary (standard deviation of the
# logarithm).
response_s = {response_s}
slowing = {slowing}
response_spread = {response_spread}
# For numbers: standard deviation of an answer; how many standard deviations of all truths a
# wrong answer is off; whether the annotator says how exact the answers are.
noise = {noise}
outlier = {outlier}
states_noise = {states_noise}
# Labels from which wrong answers are drawn, of the same type as those in the log. Without it: those
# seen so far.
#classes = ["hall", "kitchen"]
# The hours of the day (UTC) during which the annotator is available. Without it: always.
#hours = ["7-9", "18-23"]
# Name of the annotator. Without it: "simulated".
#name = "ann"
# Seed of the annotator's draws. Without it, they follow the seed above.
#seed = 1

"""

_PEOPLE = """\
[people]
# Whether only the annotator whose answer is in force may correct it, take it back, or uphold or
# decline a challenge of it; and the annotators who may do so with the answers of others.
owners = {owners}
supervisors = []
# Whether to stop learning the answers of an annotator who, judged by the labels of the others (two
# at least), is misleading; and the annotators, besides supervisors, who are exempt from that. For
# labels.
quarantine = {quarantine}
trusted = []
# Upper limits: labels, names of features and annotators of one learner, and corrections of one
# event.
max_labels = {max_labels}
max_features = {max_features}
max_annotators = {max_annotators}
max_corrections = {max_corrections}
# How many labels one annotator may give within an hour without being asked.
max_unasked_per_hour = {max_unasked_per_hour}
"""

_WORKER_PEOPLE = (
    _PEOPLE
    + """\
# How many answers of one key may wait for their events.
max_early_answers = {max_early_answers}
# Accept only answers that are signed by their annotator. streamgp makes the keys in this file.
# Alternatively, keys_env = "VARIABLE" names an environment variable that holds them.
#keys_file = "keys.json"
"""
)

_LOG = """\
[log]
# Column names. Without a time column, the row number counts as seconds; with a key column, every
# key (a user, a device) has its own learner.
#label = "label"
#time = "time"
#key = "user"
# Columns that are not features, or the only ones that are; "acc*" matches all that begin with acc.
ignore = []
#features = ["a", "b"]
# Stop after this many rows.
#limit = 1000

"""

_WINDOWS = """\
# For raw sensor rows, many per second: each window of time becomes one event, with features
# computed from its rows. Rows need a time. For labels.
#[windows]
# Seconds from the start of a window to its end, and between the starts of two windows (without
# hop_s, windows do not overlap).
#length_s = 5.0
#hop_s = 2.5
# Names of feature sets ("basic", "activity", "gps", "calendar") and of features, or "module:name"
# for a function of your own; channels that are components of a vector; columns of latitude and
# longitude.
#features = ["activity"]
#vectors = [["ax", "ay", "az"]]
#gps = ["lat", "lon"]
# Seconds for which a window waits for rows out of order; least number of rows of a window (others
# are left out); largest number of rows kept per key.
#grace_s = 0.0
#min_rows = 1
#max_rows = 100000
# A window gets the most frequent label of its rows if at least this share of them have it.
#min_purity = 0.0
# In a worker: after this many seconds without a row, the clock closes the windows of a key.
#idle_s = 60.0
# Whether questions show the raw signals; time zone of the calendar features.
#excerpt = true
#zone = "UTC"

"""

_REPLAY_LOOP = """\
[loop]
# Seconds of the log's time after which an unanswered request expires.
#expires_after_s = 3600.0
# Seconds after which an event can no longer be answered. Without it, every event is
# remembered forever.
#answer_horizon_s = 86400.0
# With a key column: how many learners to keep in memory. The others are evicted, and restored
# unchanged with their next row.
#max_keys = 1000
"""

_WORKER_HEAD = """\
# Configuration of a streamgp worker, read by `streamgp run FILE`, and by the commands that work
# on the same topics. Settings that begin with `#` are off: remove the `#` to use them.
# Try it without Kafka: `streamgp run FILE --broker file://./topics --create-topics`.
{more}
"""

_BROKER = """\
[broker]
# Some servers of the cluster. "file://DIR" keeps the topics in a directory (for one worker).
url = "kafka://localhost:9092"

# Credentials of the worker, and the certificates that it trusts. Passwords are read from
# environment variables or, with password_file and key_password_file instead, from files.
#[broker.security]
# "PLAINTEXT", "SSL", "SASL_PLAINTEXT" or "SASL_SSL".
#protocol = "SASL_SSL"
# "PLAIN", "SCRAM-SHA-256" or "SCRAM-SHA-512".
#mechanism = "SCRAM-SHA-512"
#username = "streamgp"
#password_env = "KAFKA_PASSWORD"
# Certificates: that of the authority that signed the broker's (without it, those that the system
# trusts), and the worker's own, if the broker asks for one.
#ca_file = "ca.pem"
#cert_file = "worker.pem"
#key_file = "worker.key"
#key_password_env = "KAFKA_KEY_PASSWORD"

[topics]
# Prefix of all topic names. Deployments that share a cluster also need a `group` of their own.
prefix = {prefix}
# For `streamgp run --create-topics`. More partitions let more workers share the load; their
# number cannot be changed later. replication = -1: as many copies as the broker is set to.
partitions = {partitions}
replication = {replication}
# Names of the topics, without the prefix.
events = {events}
answers = {answers}
predictions = {predictions}
requests = {requests}
consensus = {consensus}
state = {state_topic}
dead_letters = {dead_letters}

[worker]
# Workers of one group share the partitions.
group = {group}
# Name of the worker within the group, the same after every restart. Without it: the name of the
# machine and a number.
#instance = "worker-1"
# true: every key (a user, a device) has its own learner. false: one learner for all, which needs
# topics with one partition.
keyed = {keyed}
# Where to keep snapshots, so that a restart need not read the topics from the start.
state = {state}
# Seconds from one snapshot to the next.
save_every_s = {save_every_s}
# How many records are processed together at most.
batch = {batch}
# Stop when more than this share of the last 1000 inputs could not be used.
max_bad_share = {max_bad_share}
# What happens to the worker's partitions when it is stopped (SIGTERM). false: the group reserves
# them for ten seconds, so that a quick restart does not disturb other workers. true: other workers
# take them at once; use it when you reduce the number of workers.
leave = {leave}
"""

_PAGE = """\
[page]
# What annotators are asked, and what they need to know to answer alike{such_as}.
#question = "{asks}"
#guidelines = "{guides}"
# Labels that annotators can choose from the start, besides those that were given before.
#labels = ["sitting", "walking"]
# For numbers (target = "number"): their unit, and the ends of the slider that annotators see.
#unit = "°C"
#low = -10.0
#high = 40.0
"""

_ASKED = {
    "such_as": ": what each label means",
    "asks": "What were you doing?",
    "guides": "sitting: also in a bus or a car; walking: also on stairs",
}
_ASKED_FOR_NUMBERS = {
    "such_as": "",
    "asks": "How warm is it?",
    "guides": "by the thermometer at the door, to half a degree",
}

_OBSERVE = """\
[observe]
# Where a worker serves /metrics for Prometheus, /healthz and /readyz; needs the extra [metrics].
#bind = "127.0.0.1:9464"
# Whether metrics name annotators, which is personal data.
#annotators = false
"""

_WORKER_LOOP = """\
[loop]
# Seconds after which an unanswered request expires.
expires_after_s = 3600.0
# Seconds after which an event can no longer be answered and is forgotten. Without it, every event
# is remembered forever.
answer_horizon_s = 86400.0
# How many learners each partition keeps in memory. The others are evicted, and restored unchanged
# with their next event.
max_keys = 10000
"""

_REPLAY = (
    _REPLAY_HEAD + _TOP + _RULES + _ANNOTATOR + _PEOPLE + "\n" + _LOG + _WINDOWS + _REPLAY_LOOP
)
"""For `streamgp replay`."""
_WORKER = (
    _WORKER_HEAD
    + _TOP
    + _BROKER
    + "\n"
    + _RULES.replace("#open_at_most", "open_at_most")
    + _WINDOWS
    + _WORKER_LOOP
    + "\n"
    + _WORKER_PEOPLE
    + "\n"
    + _LOG.replace("[log]\n", "[log]\n# How `streamgp send` reads a log.\n").rstrip("\n")
    + "\n\n"
    + _PAGE
    + "\n"
    + _OBSERVE
)
"""For `streamgp run`."""


_SHORT = {
    "": {"preset", "target", "seed"},
    "broker": {"url"},
    "topics": {"prefix", "partitions"},
    "worker": {"group", "keyed", "state"},
    "learner": {"length_scale", "noise_variance"},
    "questions": {"per_day", "at_start", "open_at_most"},
    "annotator": {"error_rate"},
    "loop": {"expires_after_s", "answer_horizon_s", "max_keys"},
    "people": {"owners", "keys_file"},
    "log": {"label", "ignore"},
    "observe": {"bind"},
}
"""The settings of short files. All whose value is not the default have to be among them."""
_SHORT_OF_TARGET: dict[Target, dict[str, set[str]]] = {
    "label": {"windows": {"length_s", "features"}, "page": {"question", "labels"}},
    "number": {"page": {"question", "unit"}},
}
"""Those for one target only."""


def template(
    preset: Preset = "default",
    target: Target = "label",
    *,
    worker: bool = False,
    complete: bool = False,
) -> str:
    """Return the configuration file of a preset, for a replay or for a worker.

    With `complete`, it has all settings; without, those that are most often changed.
    """
    config = resolved(Config(preset=preset, target=target))
    scale = config.learner.length_scale
    topics = _settings(Topics())
    values = {  # where two sections have the same name, the later one
        **_settings(config.annotator),
        **_settings(config.learner),
        **_settings(People()),
        **topics,
        **_settings(Worker()),
        **_settings(config),
        **_of_rules(),
        **_ASKED,
        "length_scale": "#length_scale = 2.0" if scale is None else f"length_scale = {scale}",
        "temporal": shown(config.temporal.enabled),
        "drift_test": shown(config.drift_test.enabled),
        "drift_at_least": shown(config.drift_test.at_least),
        "drift_run_length": shown(config.drift_test.run_length),
        "query_section": "[query]",
        "query": _rule(config.query),
        "challenge": _rule(config.challenge),
        "review": _rule(config.review),
        "budget_section": "[budget]",
        "budget": _rule(config.budget),
        "state_topic": topics["state"],
        "more": ""
        if complete
        else "# `streamgp init` with the same options and `--all` prints all settings.\n",
    }
    if target == "number":
        values |= _ASKED_FOR_NUMBERS
        # Written out, the rate would also hold where [questions] has a limit, which replaces it.
        for name in ("query", "budget"):
            values[f"{name}_section"] = f"#[{name}]"
            values[name] = "#" + values[name].replace("\n", "\n#")
    text = (_WORKER if worker else _REPLAY).format(**values)
    return text if complete else _shortened(text, target)


_PARAGRAPH = re.compile(
    r"(?:(?P<header>(?:# .*\n)*#?\[(?P<section>.+)\]\n))?"
    r"(?P<body>(?:# .*\n)*(?P<settings>(?:#?\w+ = .*\n)*))\n*"
)


def _shortened(text: str, target: Target) -> str:
    """Return the paragraphs of `_SHORT`: comments, and the settings that follow them."""
    kept = [text[: text.index("\n\n") + 1]]  # the head
    section = header = ""
    for paragraph in _PARAGRAPH.finditer(text):
        if paragraph["header"]:
            section, header = paragraph["section"], paragraph["header"]
        wanted = {**_SHORT, **_SHORT_OF_TARGET[target]}.get(section, set())
        if wanted.intersection(re.findall(r"(?m)^#?(\w+) = ", paragraph["settings"])):
            kept.append("\n" * bool(header or not section) + header + paragraph["body"])
            header = ""
    return "".join(kept)


def _of_rules() -> dict[str, str]:
    about = {name: f"{one.about}: {one.options}" for name, one in LEARNERS.items()}
    return {
        "learners": _listed(about),
        "queries": _examples("query"),
        "challenges": _examples("challenge"),
        "reviews": _examples("review", but="never"),
        "reservoirs": _examples("reservoir", but="never"),
        "budgets": _examples("budget", but="unlimited"),
        "number_queries": _for_numbers("query", "variance"),
        "number_challenges": _for_numbers("challenge", "outside_interval"),
    }


def _examples(kind: Kind, *, but: str = "") -> str:
    return _listed({name: one.example for name, one in rules(kind).items() if name != but})


_JOINED = "\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}"


def _listed(texts: Mapping[str, str]) -> str:
    """Return comments, one paragraph per name, with the texts aligned."""
    width = max(map(len, texts)) + 4
    lines = [
        fill(
            text.replace(" = ", _JOINED),  # a setting and its value stay on one line
            width=100,
            initial_indent=f"#   {chr(34) + name + chr(34):<{width}}",
            subsequent_indent=f"#   {'':<{width}}",
            break_on_hyphens=False,
        ).replace(_JOINED, " = ")
        for name, text in texts.items()
    ]
    return "\n".join(lines)


def _for_numbers(kind: Kind, default: str) -> str:
    names = [shown(name) for name, one in rules(kind).items() if "number" in one.targets]
    text = f"For numbers: {', '.join(names[:-1])} or {names[-1]}; {shown(default)} is the default."
    return fill(text, width=100, initial_indent="# ", subsequent_indent="# ")


def _settings(section: msgspec.Struct) -> dict[str, str]:
    return {name: shown(value) for name, value in msgspec.to_builtins(section).items()}


def _rule(rule: msgspec.Struct | None) -> str:
    assert rule is not None  # the preset sets it
    own = {name: value for name, value in _settings(rule).items() if name != "budget"}  # a section
    return "\n".join(f"{name} = {value}" for name, value in own.items())


# --- The settings of a configuration that differ from the defaults.


_BARE = re.compile(r"[A-Za-z0-9_-]+")


def toml(config: Config) -> str:
    """Return a configuration as TOML, without settings that have their default.

    Examples
    --------
    >>> from streamgp.config.rules import section
    >>> from streamgp.config.settings import Learner, Log
    >>> config = Config(
    ...     learner=Learner(length_scale=1.2),
    ...     budget=section("budget", "at_most", n=50),
    ...     log=Log(label="room"),
    ... )
    >>> print(toml(config), end="")
    <BLANKLINE>
    [learner]
    length_scale = 1.2
    <BLANKLINE>
    [budget]
    rule = "at_most"
    n = 50
    gives_back = true
    <BLANKLINE>
    [log]
    label = "room"

    """
    return "".join(f"{line}\n" for line in _lines(_differing(config, Config()), ()))


def _differing(section: msgspec.Struct, default: object) -> dict[str, Any]:
    """Return the settings that differ from `default`, as builtins; a rule always has its name."""
    kind = type(section)
    like = type(default) is kind
    tag = kind.__struct_config__.tag
    found: dict[str, Any] = {} if tag is None else {"rule": tag}
    for name in kind.__struct_fields__:
        value = getattr(section, name)
        if like and value == getattr(default, name):
            continue
        if isinstance(value, msgspec.Struct):
            found[name] = _differing(value, getattr(default, name) if like else None)
        elif name == "annotators":
            found[name] = {key: _differing(one, Annotator()) for key, one in value.items()}
        elif value is not None:
            found[name] = msgspec.to_builtins(value)
    return found


def _lines(section: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[str]:
    for name, value in section.items():
        # None is a value within a list, but here it means that there is no setting.
        if value is not None and not isinstance(value, Mapping):
            yield f"{_key(name)} = {_value(value)}"
    for name, value in section.items():
        if isinstance(value, Mapping):
            inner = (*path, name)
            if not value or not all(isinstance(one, Mapping) for one in value.values()):
                yield ""
                yield f"[{'.'.join(map(_key, inner))}]"
            yield from _lines(value, inner)


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _value(name)


def _value(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, Mapping):
        inner = ", ".join(f"{_key(name)} = {_value(v)}" for name, v in value.items())
        return f"{{{inner}}}"
    # TOML writes numbers, booleans and strings as JSON does, except for one character.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
