"""The settings: what the sections of a configuration are called and what they may hold.

Only names, types, ranges and defaults stand here; `config` reads them from a file, `build` makes
objects of them. A setting that is None is taken from the preset, or, where the preset has none
either, is switched off.

"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias, TypeVar

import msgspec
from msgspec import Meta
from msgspec.structs import replace

from connectors.topics import TopicName

Share: TypeAlias = Annotated[float, Meta(ge=0, le=1)]
# 30 000 years, so that no sum of times leaves the numbers.
_LONGEST_S = 10**12
Seconds: TypeAlias = Annotated[float, Meta(gt=0, le=_LONGEST_S)]
Count: TypeAlias = Annotated[int, Meta(ge=1)]
# numpy, inside some River learners, takes no larger seed.
Seed: TypeAlias = Annotated[int, Meta(ge=0, le=2**32 - 1)]
Text: TypeAlias = Annotated[str, Meta(min_length=1)]
PresetName: TypeAlias = Literal["default", "paper"]
TargetName: TypeAlias = Literal["label", "number"]

# What a label in a log can be.
PlainLabel: TypeAlias = bool | int | float | str

T = TypeVar("T")

DEFAULT_SEED = 1


class Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A section of the file; an unknown key in it is an error."""


class _Rule(Section, frozen=True, kw_only=True, tag_field="rule"):
    """A section whose `rule` says which further keys it has."""


class Paper(_Rule, frozen=True, kw_only=True, tag="paper"):
    """The rule of the ISGP paper."""


class Always(_Rule, frozen=True, kw_only=True, tag="always"):
    """Always ask, or challenge every disagreement."""


class Never(_Rule, frozen=True, kw_only=True, tag="never"):
    """Never ask, never challenge, or never look back."""


class SkepticalQuery(_Rule, frozen=True, kw_only=True, tag="skeptical"):
    """Ask with c times the probability that the prediction is wrong, or with a least one."""

    c: Annotated[float, Meta(ge=0)] = 1.0
    at_least: Share = 0.0


class Random(_Rule, frozen=True, kw_only=True, tag="random"):
    """Ask for a fixed share of the events."""

    rate: Share


class Entropy(_Rule, frozen=True, kw_only=True, tag="entropy"):
    """Ask when the entropy of the probabilities, in nats, exceeds a threshold."""

    threshold: Annotated[float, Meta(ge=0)] = 0.0


class LeastConfidence(_Rule, frozen=True, kw_only=True, tag="least_confidence"):
    """Ask when one minus the highest probability exceeds a threshold."""

    threshold: Share = 0.0


class BestVersusSecond(_Rule, frozen=True, kw_only=True, tag="best_versus_second"):
    """Ask when the two highest probabilities are too close."""

    threshold: Share = 0.0


class Variance(_Rule, frozen=True, kw_only=True, tag="variance"):
    """Ask when the variance of what is predicted exceeds a threshold."""

    threshold: Annotated[float, Meta(ge=0)] = 0.0


class KL(_Rule, frozen=True, kw_only=True, tag="kl"):
    """Ask when the predictions of the experts of an ensemble diverge."""

    threshold: Annotated[float, Meta(ge=0)] = 0.0
    least_weight: Share = 0.0


class Deterministic(_Rule, frozen=True, kw_only=True, tag="deterministic"):
    """Ask when the means of the experts of an ensemble are far apart."""

    threshold: Annotated[float, Meta(ge=0)] = 0.0


class EqualError(_Rule, frozen=True, kw_only=True, tag="equal_error"):
    """Ask below the confidence at which right and wrong predictions are equally often misjudged."""

    uncertainty: Literal["bvsb", "entropy"] = "bvsb"
    at_least: Share = 0.1
    forgetting: Annotated[float, Meta(gt=0, le=1)] = 0.99


class SkepticalChallenge(_Rule, frozen=True, kw_only=True, tag="skeptical"):
    """Challenge when the given label is wrong with more than this probability."""

    threshold: Share = 0.1


class OutsideInterval(_Rule, frozen=True, kw_only=True, tag="outside_interval"):
    """Challenge a number outside the interval in which answers are expected."""

    level: Share = 0.99


class Unlimited(_Rule, frozen=True, kw_only=True, tag="unlimited"):
    """No limit on label requests."""


class AtMost(_Rule, frozen=True, kw_only=True, tag="at_most"):
    """At most n label requests in all."""

    n: Annotated[int, Meta(ge=0)]
    gives_back: bool = True


class AtMostPer(_Rule, frozen=True, kw_only=True, tag="at_most_per"):
    """At most n label requests in any span_s seconds."""

    n: Annotated[int, Meta(ge=0)]
    span_s: Seconds
    gives_back: bool = False


class Rate(_Rule, frozen=True, kw_only=True, tag="rate"):
    """Questions for about this share of the events."""

    rate: Share
    window: Count = 50
    horizon: Count = 8
    gives_back: bool = True


class Adaptive(_Rule, frozen=True, kw_only=True, tag="adaptive"):
    """Questions about this share of the events, by a threshold that follows the scores."""

    rate: Share
    step: Annotated[float, Meta(gt=0)] = 1.0


class AllOf(_Rule, frozen=True, kw_only=True, tag="all_of"):
    """Several budgets at once."""

    budgets: Annotated[tuple[AtMost | AtMostPer | Rate | Adaptive, ...], Meta(min_length=1)]


Budget: TypeAlias = Unlimited | AtMost | AtMostPer | Rate | Adaptive | AllOf


class LeaveOneOut(_Rule, frozen=True, kw_only=True, tag="leave_one_out"):
    """Challenge old labels that have become improbable, by what all others say."""

    threshold: Share = 0.3
    every: Count = 5
    budget: Budget = Unlimited()


class Latest(_Rule, frozen=True, kw_only=True, tag="latest"):
    """Ask about the one of the latest events whose label would tell most."""

    criterion: Literal["l2fm", "hvar", "rkhs", "mvar", "rand"] = "l2fm"
    size: Count = 200
    every: Count = 10
    max_age_s: Seconds | None = None
    budget: Budget = Unlimited()


Query: TypeAlias = (
    Paper
    | SkepticalQuery
    | Always
    | Never
    | Random
    | Entropy
    | LeastConfidence
    | BestVersusSecond
    | Variance
    | KL
    | Deterministic
    | EqualError
)
ChallengeRule: TypeAlias = Paper | SkepticalChallenge | OutsideInterval | Always | Never
Review: TypeAlias = Never | LeaveOneOut
Reservoir: TypeAlias = Never | Latest


class Learner(Section, frozen=True, kw_only=True):
    """One of streamgp, such as the Gaussian process ("gp"), or a River learner by its path."""

    name: Text = "gp"
    length_scale: Annotated[float, Meta(gt=0)] | None = None
    noise_variance: Annotated[float, Meta(gt=0)] | None = None
    max_points: Count | Literal["all"] | None = None
    learn_hyperparameters: bool | Literal["leave_one_out"] = False
    window: Count | None = None
    drift: bool = False
    options: dict[str, Any] = {}


class Annotator(Section, frozen=True, kw_only=True):
    """A simulated annotator; `delay` is in seconds of the log's time.

    One with a `tiring_rate` is tired, see `streamgp.TiredAnnotator`, and only to such a one belong
    `half_life_s`, `response_s`, `slowing` and `response_spread`. `noise`, `outlier` and
    `states_noise` are for numbers, see `streamgp.SimulatedMeasurer`.
    """

    name: Text | None = None
    error_rate: Share = 0.0
    tiring_rate: Annotated[float, Meta(ge=0)] = 0.0
    half_life_s: Seconds = 3600.0
    response_s: Seconds = 2.0
    slowing: Annotated[float, Meta(ge=0, le=10**6)] = 0.05
    response_spread: Annotated[float, Meta(ge=0, le=10)] = 0.25
    delay: Annotated[float, Meta(ge=0, le=_LONGEST_S)] = 0.0
    decline_rate: Share = 0.0
    stubborn: bool = False
    classes: Annotated[tuple[PlainLabel, ...], Meta(min_length=1)] | None = None
    noise: Annotated[float, Meta(ge=0)] = 0.0
    outlier: Annotated[float, Meta(ge=0)] = 5.0
    states_noise: bool = False
    seed: Seed | None = None


OF_TIRED = ("tiring_rate", "half_life_s", "response_s", "slowing", "response_spread")
"""The settings of an annotator who gets tired."""


class Log(Section, frozen=True, kw_only=True):
    """The columns of the log."""

    label: Text | None = None
    time: Text | None = None
    key: Text | None = None
    ignore: tuple[Text, ...] = ()
    features: tuple[Text, ...] | None = None
    limit: Count | None = None


class Loop(Section, frozen=True, kw_only=True):
    """How long a request waits, how long an event can be answered, how many keys are ready."""

    expires_after_s: Seconds | None = None
    answer_horizon_s: Seconds | None = None
    max_keys: Count | None = None


class Config(Section, frozen=True, kw_only=True):
    """The whole file."""

    preset: PresetName = "default"
    target: TargetName = "label"
    seed: Seed = DEFAULT_SEED
    warm_up: Annotated[int, Meta(ge=0)] | None = None
    learner: Learner = Learner()
    query: Query | None = None
    challenge: ChallengeRule | None = None
    review: Review = Never()
    reservoir: Reservoir = Never()
    budget: Budget = Unlimited()
    total_budget: Budget = Unlimited()
    annotator: Annotator = Annotator()
    annotators: dict[Text, Annotator] = {}
    log: Log = Log()
    loop: Loop = Loop()


NUMBER_QUERY: Query = Variance()
NUMBER_CHALLENGE: ChallengeRule = OutsideInterval()
"""The rules where targets are numbers and nothing else is said."""

# What the presets of `streamgp.isgp` decide; a test holds the two together.
PRESETS: dict[str, Config] = {
    "default": Config(
        preset="default",
        warm_up=200,
        learner=Learner(noise_variance=0.5, max_points=500),
        query=SkepticalQuery(),
        challenge=SkepticalChallenge(),
    ),
    "paper": Config(
        preset="paper",
        warm_up=0,
        learner=Learner(length_scale=2.0, noise_variance=1e-16, max_points="all"),
        query=Paper(),
        challenge=Paper(),
    ),
}


def resolved(config: Config) -> Config:
    """Fill in what the preset decides, so that the result says everything.

    Examples
    --------
    >>> resolved(Config()).challenge
    SkepticalChallenge(threshold=0.1)
    >>> resolved(Config(preset="paper", challenge=Never())).challenge
    Never()

    """
    preset = PRESETS[config.preset]
    learner = config.learner
    if learner.name == "gp":
        # A window is a bound itself, in place of the preset's.
        bound = preset.learner.max_points if learner.window is None else None
        learner = replace(
            learner,
            length_scale=_first(learner.length_scale, preset.learner.length_scale),
            noise_variance=_first(learner.noise_variance, preset.learner.noise_variance),
            max_points=_first(learner.max_points, bound),
        )
    numbers = config.target == "number"
    return replace(
        config,
        learner=learner,
        warm_up=_first(config.warm_up, preset.warm_up),
        query=_first(config.query, NUMBER_QUERY if numbers else preset.query),
        challenge=_first(config.challenge, NUMBER_CHALLENGE if numbers else preset.challenge),
    )


def _first(value: T, default: T) -> T:
    return default if value is None else value


# --- The settings of a worker: its broker, its topics, and how it goes about its work.
#
# They stand in the same file as those of a replay, which takes no notice of them; names, types,
# ranges and defaults as in `settings`. Secrets are never settings: only where one is kept is.


# What Kafka allows in names of topics, and what is safe as the name of a directory.
_NAME = r"(?!\.{1,2}\Z)[a-zA-Z0-9._-]{1,200}\Z"
_NAME_WORDS = 'a name of at most 200 letters, digits, ".", "_" and "-"'
Name: TypeAlias = Annotated[str, Meta(pattern=f"^{_NAME}", extra={"expected": _NAME_WORDS})]
Prefix: TypeAlias = Annotated[
    str,
    Meta(
        pattern=r"^[a-zA-Z0-9._-]{0,150}\Z",
        extra={"expected": 'at most 150 letters, digits, ".", "_" and "-"'},
    ),
]
# Whoever writes the secret itself here shall not find it in a log.
Variable: TypeAlias = Annotated[
    str,
    Meta(
        pattern=r"^[A-Za-z_][A-Za-z0-9_]*\Z",
        extra={"expected": "the name of an environment variable", "secret": True},
    ),
]
_PATH = r"^[^\0]+\Z"
FilePath: TypeAlias = Annotated[str, Meta(pattern=_PATH, extra={"expected": "a path"})]
SecretFile: TypeAlias = Annotated[
    str, Meta(pattern=_PATH, extra={"expected": "the path of a file", "secret": True})
]
Url: TypeAlias = Annotated[
    str,
    Meta(
        min_length=1,
        extra={"expected": 'an address, as in "kafka://host:9092"', "secret": True},
    ),
]
Protocol: TypeAlias = Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
Mechanism: TypeAlias = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]
Replication: TypeAlias = Annotated[int, Meta(ge=-1, le=32767)]


class Security(Section, frozen=True, kw_only=True):
    """How to be let in by the broker, and how to know that it is the right one."""

    protocol: Protocol = "PLAINTEXT"
    mechanism: Mechanism | None = None
    username: Text | None = None
    password_env: Variable | None = None
    password_file: SecretFile | None = None
    ca_file: FilePath | None = None
    cert_file: FilePath | None = None
    key_file: FilePath | None = None
    key_password_env: Variable | None = None
    key_password_file: SecretFile | None = None


class Broker(Section, frozen=True, kw_only=True):
    """Where the topics are."""

    url: Url
    security: Security = Security()


class Topics(Section, frozen=True, kw_only=True):
    """What the topics are called, and how they are made."""

    prefix: Prefix = ""
    partitions: Count = 4
    replication: Replication = -1
    events: Name = "events"
    answers: Name = "answers"
    predictions: Name = "predictions"
    requests: Name = "requests"
    consensus: Name = "consensus"
    state: Name = "state"
    dead_letters: Name = "dead-letters"

    def names(self) -> dict[TopicName, str]:
        """Return what each topic is called on the broker.

        Examples
        --------
        >>> Topics(prefix="rooms.", dead_letters="refused").names()["dead-letters"]
        'rooms.refused'

        """
        return {role: self.prefix + getattr(self, field) for role, field in TOPIC_FIELDS.items()}


TOPIC_FIELDS: dict[TopicName, str] = {
    "events": "events",
    "answers": "answers",
    "predictions": "predictions",
    "requests": "requests",
    "consensus": "consensus",
    "state": "state",
    "dead-letters": "dead_letters",
}
"""The setting of each topic."""


class Worker(Section, frozen=True, kw_only=True):
    """How a worker goes about its work."""

    group: Name = "streamgp"
    instance: Name | None = None
    keyed: bool = True
    state: FilePath = "streamgp-state"
    batch: Annotated[int, Meta(ge=1, le=100_000)] = 1000
    save_every_s: Seconds = 30.0
    max_bad_share: Share = 0.5
    leave: bool = False


class WorkerConfig(Config, frozen=True, kw_only=True):
    """The whole file: what a replay needs and what a worker needs."""

    broker: Broker | None = None
    topics: Topics = Topics()
    worker: Worker = Worker()


def replay_part(config: WorkerConfig) -> Config:
    """Return what a replay takes notice of.

    Examples
    --------
    >>> replay_part(WorkerConfig(seed=7, worker=Worker(batch=10))) == Config(seed=7)
    True

    """
    return Config(**{name: getattr(config, name) for name in Config.__struct_fields__})
