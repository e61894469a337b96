"""The text of the configuration files that `streamgp init` prints.

Settings stand with their value; those that are off by default stand as `#name = example`, so that
taking away the `#` gives a valid file. Other comments begin with `# `. What is said of rules and
learners stands where they are registered, in `streamgp.query.registry`.

"""

from __future__ import annotations

from collections.abc import Mapping
from textwrap import fill

import msgspec

from streamgp.config.settings import Config, Learner, People, PresetName, Topics, Worker, resolved
from streamgp.config.validation import shown
from streamgp.query.registry import LEARNERS, Kind, rules

_REPLAY_HEAD = """\
# Configuration of streamgp, read by `streamgp replay LOG --config FILE`.
# Every setting may be left out; what stands here is the default. Settings that begin
# with `#` are off: take away the `#` to use them. The command line overrides the file.

"""

_TOP = """\
# Where the values come from that this file leaves out: "default", or "paper" (the rules
# and numbers of the ISGP paper, on unscaled features).
preset = {preset}

# What is predicted: "label", names of classes, or "number". Some settings below are for one of
# the two.
target = {target}

# Seeds every random draw: the same seed and log give the same run.
seed = {seed}

# Features are scaled by their mean and standard deviation over this many first events. 0: not
# scaled at all.
warm_up = {warm_up}

# Whether they are also clipped at 3 standard deviations, and scaled again after 2, 4, 8, ... times
# as many events.
rescale = {rescale}

"""

_RULES = """\
[learner]
# What learns. "gp", a Gaussian process, has the settings below; the others have theirs in a section
# [learner.options], in place of those below:
{learners}
# or any River classifier or regressor by its path, for example "river.naive_bayes.GaussianNB", or
# one of your own, "module:name": streamgp runs that module. [learner.options] of "gp" has
# kernel = "streamgp.kernels:Matern52", or what makes another kernel.
name = {name}
# How far a labelled example reaches, in units of the scaled features. Without it: grows
# with the square root of the number of features.
{length_scale}
# How much a single label may be off (labels count as 0 and 1); more is more skeptical. For
# numbers a share of their variance.
noise_variance = {noise_variance}
# How many points it keeps. It is exact up to so many labelled examples, and from then on
# as fast and as large as at that time; "all" keeps every example. For a world that changes all the
# time, window = 200 in its place: the latest so many examples, and no others.
max_points = {max_points}
# Whether it finds length scale and noise by itself, starting from the two above, whenever
# the number of its examples has doubled; the work is spread over the examples that follow.
# "leave_one_out": likewise, by what each example is predicted to be by all others.
learn_hyperparameters = {learn_hyperparameters}
# Whether it forgets all examples when labels are predicted wrongly more often than they were: for
# a world that changes at times.
drift = {drift}

[temporal]
# Whether predictions take into account what was believed of the events before: for labels of
# events that follow each other in time. What is asked and contested does not depend on it.
enabled = {temporal}

[query]
# When to ask for a label: the query strategy. The rules, and their settings:
{queries}
# "variance", "kl" and "deterministic" go with the budgets "rate" and "adaptive"; the last two
# compare the experts of learner.name = "ensemble".
{number_queries}
# One of your own: rule = "module:name", and its settings; streamgp runs that module.
{query}

[challenge]
# When to ask again because a given label is probably wrong. The rules, and their settings:
{challenges}
{number_challenges}
{challenge}

[review]
# When to doubt a label that was learned before. The other rule, and its settings:
{reviews}
# A section [review.budget], with the rules of [budget], limits these challenges.
rule = "never"

[reservoir]
# When to ask about an earlier event that has no label. The other rule, and its settings:
{reservoirs}
# For a log that is to be labelled well as a whole; the next predictions are better without it.
# A section [reservoir.budget], with the rules of [budget], limits these questions.
rule = "never"

[budget]
# How many labels may be asked for; challenges are not counted. The other rules, and their settings:
{budgets}
# gives_back = true: a question that was never answered does not count after all.
# Without this section, and without [query], numbers are asked for at a rate of 0.1.
rule = {budget}

[questions]
# How many labels may be asked for of each key within any 24 hours and within any hour, spread
# evenly and spent on what is most doubtful: [query] then says what is doubtful, and no longer how
# much of it is asked about.
#per_day = 30
#per_hour = 5
# How many questions of each key may be open at a time. Beyond it a question replaces the least
# useful open one, or is not asked; questions whose answer has become clear are taken back.
#open_at_most = 20
# In which order annotators get label requests; challenges come first. "useful": the highest score
# first, spread over the classes that were predicted; "newest" or "oldest" first.
#order = "useful"
# true: learn at which hours questions are answered before they expire, and spare the others.
#availability = true
# Which share of the questions, once answered, is put to a second annotator as well, who is not told
# what the first one said, and which is put to the same annotator again later.
#overlap = 0.1
#repeat = 0.05

[total_budget]
# Where every key has a learner, how many labels may be asked for in all, on top of what [budget]
# allows each key. The rules are the same.
rule = {budget}

"""

_ANNOTATOR = """\
[annotator]
# The simulated annotator, who reads the answers from the log's label column. For several
# of them at once, replace this section by one for each: [annotators.ann], [annotators.bob].
# Share of wrong answers, seconds until an answer comes, share of unanswered requests.
error_rate = {error_rate}
delay = {delay}
decline_rate = {decline_rate}
# true: a challenged annotator always repeats the first answer.
stubborn = {stubborn}
# What each question adds to the share of wrong answers, and the seconds after which half of
# that has passed. 0.0: never tired.
tiring_rate = {tiring_rate}
half_life_s = {half_life_s}
# Of a tired one: the median seconds that an answer takes when rested, what each question adds to
# them, in units of these, and how much they vary (standard deviation of the logarithm).
response_s = {response_s}
slowing = {slowing}
response_spread = {response_spread}
# For numbers: standard deviation of an answer; how many standard deviations of all truths a
# wrong one is off; whether the annotator says how exact the answers are.
noise = {noise}
outlier = {outlier}
states_noise = {states_noise}
# The labels to err among, of the same type as those in the log. Without it: those seen so far.
#classes = ["hall", "kitchen"]
# The hours of the day (UTC) during which the annotator is there. Without it: always.
#hours = ["7-9", "18-23"]
# How the annotator signs; without it "simulated".
#name = "ann"
# Without a seed of their own the annotator's draws follow the seed above.
#seed = 1

"""

_PEOPLE = """\
[people]
# Whether only the annotator whose answer stands may correct it, take it back, or uphold or decline
# a challenge of it; and the annotators who may do so with the answers of others.
owners = {owners}
supervisors = []
# Whether answers of an annotator who misleads, by the labels of two others, are no longer learned;
# and the annotators, beside supervisors, to whom that never happens.
quarantine = {quarantine}
trusted = []
# How much is kept at most: labels, names of features and annotators of one learner, corrections
# of one event.
max_labels = {max_labels}
max_features = {max_features}
max_annotators = {max_annotators}
max_corrections = {max_corrections}
# Labels that one annotator may give within an hour without having been asked.
max_unasked_per_hour = {max_unasked_per_hour}
"""

_WORKER_PEOPLE = (
    _PEOPLE
    + """\
# Answers of one key that wait for their events.
max_early_answers = {max_early_answers}
# Only answers that their annotator has signed count. streamgp makes the keys in this file; or
# keys_env = "VARIABLE" in its place, which holds them.
#keys_file = "keys.json"
"""
)

_LOG = """\
[log]
# Column names. Without a time column the row number counts as seconds; with a key column
# every key (a user, a device) has a learner of its own.
#label = "label"
#time = "time"
#key = "user"
# Columns that are not features, or the only ones that are; "acc*" is all that begin so.
ignore = []
#features = ["a", "b"]
# Stop after this many rows.
#limit = 1000

"""

_WINDOWS = """\
# For raw rows of sensors, many a second: each window of time becomes one event, with the features
# of its rows. Rows need a time.
#[windows]
# Seconds from the start of a window to its end, and between the starts of two (without it, windows
# do not overlap).
#length_s = 5.0
#hop_s = 2.5
# Names of sets ("basic", "activity", "gps", "calendar") and of features, or "module:name" for a
# function of your own. Channels that are components of a vector; columns of latitude and longitude.
#features = ["activity"]
#vectors = [["ax", "ay", "az"]]
#gps = ["lat", "lon"]
# Seconds for which a window waits for rows out of order; windows with fewer rows are left out; rows
# of one key that are kept at most.
#grace_s = 0.0
#min_rows = 1
#max_rows = 100000
# A window has the label of most of its rows, if it is that of at least this share of them.
#min_purity = 0.0
# In a worker: seconds without a row after which the clock closes the windows of a key.
#idle_s = 60.0
# Whether questions show the raw signals; time zone of the calendar features.
#excerpt = true
#zone = "UTC"

"""

_REPLAY_LOOP = """\
[loop]
# Seconds of the log's time after which an unanswered request ends.
#expires_after_s = 3600.0
# Seconds after which an event can no longer be answered. Without it, every event is
# remembered for ever.
#answer_horizon_s = 86400.0
# With a key column: how many learners to hold in memory. The others are evicted, and come back
# unchanged with their next row.
#max_keys = 1000
"""

_WORKER_HEAD = """\
# Configuration of a streamgp worker, read by `streamgp run FILE`, and by the commands that work
# on the same topics. Settings that begin with `#` are off: take away the `#` to use them.
# Try it without Kafka: `streamgp run FILE --broker file://./topics --create-topics`.

"""

_BROKER = """\
[broker]
# Some servers of the cluster; "file://DIR" keeps the topics in a directory (one worker),
# "memory://" only as long as the worker runs.
url = "kafka://localhost:9092"

# Who the worker is, and whom it trusts. The passwords stand in environment variables, or, with
# password_file and key_password_file in place of the two below, in files.
#[broker.security]
# "PLAINTEXT", "SSL", "SASL_PLAINTEXT" or "SASL_SSL".
#protocol = "SASL_SSL"
# "PLAIN", "SCRAM-SHA-256" or "SCRAM-SHA-512".
#mechanism = "SCRAM-SHA-512"
#username = "streamgp"
#password_env = "KAFKA_PASSWORD"
# Certificates: of the authority that signed the broker's (without it those that the system
# trusts), and the worker's own, where the broker asks for one.
#ca_file = "ca.pem"
#cert_file = "worker.pem"
#key_file = "worker.key"
#key_password_env = "KAFKA_KEY_PASSWORD"

[topics]
# What every name begins with. Deployments that share a cluster need a `group` of their own, too.
prefix = {prefix}
# For `streamgp run --create-topics`. More partitions let more workers share the load; their
# number cannot be changed later. replication = -1: as many copies as the broker is set to.
partitions = {partitions}
replication = {replication}
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
# Its own name within the group, the same after every restart. Without it: the name of the
# machine and a number.
#instance = "worker-1"
# true: every key (a user, a device) has a learner of its own. false: one learner for all, which
# needs topics with one partition.
keyed = {keyed}
# Where to keep snapshots, so that a restart need not read the topics from the start.
state = {state}
save_every_s = {save_every_s}
# How many records are worked off together at most.
batch = {batch}
# Stop when more than this share of the last 1000 inputs could not be used.
max_bad_share = {max_bad_share}
# What a worker does with its place in the group when it is stopped (SIGTERM). false: the group
# keeps its partitions for ten seconds, so that a quick restart disturbs no other worker. true:
# others take them at once, as when workers become fewer.
leave = {leave}
"""

_PAGE = """\
[page]
# Of numbers (target = "number"): their unit, and the ends of the slider that annotators are shown.
#unit = "°C"
#low = -10.0
#high = 40.0
"""

_OBSERVE = """\
[observe]
# Where a worker serves /metrics for Prometheus, /healthz and /readyz; needs the extra [metrics].
#bind = "127.0.0.1:9464"
# Whether metrics name annotators, which is personal data.
#annotators = false
"""

_WORKER_LOOP = """\
[loop]
# Seconds after which an unanswered request ends.
expires_after_s = 3600.0
# Seconds after which an event can no longer be answered, and is forgotten; without it, every
# event is remembered for ever.
answer_horizon_s = 86400.0
# How many learners each partition holds in memory. The others are evicted, and come back
# unchanged with their next event.
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


def template(preset: PresetName = "default", *, worker: bool = False) -> str:
    """Write the configuration file of a preset, for a replay or for a worker."""
    config = resolved(Config(preset=preset))
    scale = config.learner.length_scale
    return (_WORKER if worker else _REPLAY).format(
        preset=shown(config.preset),
        target=shown(config.target),
        seed=config.seed,
        warm_up=config.warm_up,
        rescale=shown(config.rescale),
        name=shown(Learner().name),
        length_scale="#length_scale = 2.0" if scale is None else f"length_scale = {scale}",
        noise_variance=config.learner.noise_variance,
        max_points=shown(config.learner.max_points),
        learn_hyperparameters=shown(config.learner.learn_hyperparameters),
        drift=shown(config.learner.drift),
        temporal=shown(config.temporal.enabled),
        query=_rule(config.query),
        challenge=_rule(config.challenge),
        budget=shown("unlimited"),
        error_rate=config.annotator.error_rate,
        delay=config.annotator.delay,
        decline_rate=config.annotator.decline_rate,
        stubborn=shown(config.annotator.stubborn),
        tiring_rate=config.annotator.tiring_rate,
        half_life_s=config.annotator.half_life_s,
        response_s=config.annotator.response_s,
        slowing=config.annotator.slowing,
        response_spread=config.annotator.response_spread,
        noise=config.annotator.noise,
        outlier=config.annotator.outlier,
        states_noise=shown(config.annotator.states_noise),
        **_of_rules(),
        **_of_worker(),
        **_of_people(),
    )


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
    """Return comments, a paragraph for each name, with the texts below each other."""
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


def _of_worker() -> dict[str, str]:
    topics = {name: shown(value) for name, value in msgspec.to_builtins(Topics()).items()}
    topics["state_topic"] = topics.pop("state")
    worker = {name: shown(value) for name, value in msgspec.to_builtins(Worker()).items()}
    return topics | worker


def _rule(rule: object) -> str:
    settings = msgspec.to_builtins(rule)
    return "\n".join(f"{name} = {shown(value)}" for name, value in settings.items())


def _of_people() -> dict[str, str]:
    return {name: shown(value) for name, value in msgspec.to_builtins(People()).items()}
