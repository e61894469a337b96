"""The settings: sections of a configuration and the values they may hold.

Here are only names, types, ranges and defaults; those of rules are in `rules`. `load` reads them
from a file, `build` makes objects from them. A setting that is None is taken from the preset or,
if the preset has none either, is off.

"""

from __future__ import annotations

from dataclasses import fields
from functools import cache, partial
from typing import Annotated, Any, Literal, TypeAlias, TypeVar

import msgspec
from msgspec import Meta
from msgspec.structs import replace

from connectors.topics import ALL_TOPICS, TopicName
from streamgp.base import Label, Preset, Rescale, Target
from streamgp.config.rules import (
    Budget,
    Challenge,
    Query,
    Reservoir,
    Review,
    RuleSection,
    Section,
    section,
)
from streamgp.interactive.people import DEFAULT_PEOPLE, LoopRules
from streamgp.interactive.people import People as Rules
from streamgp.query.registry import LONGEST_S, Count, Limit, NonNegative, Positive, Seconds, Share

# numpy, used by some River learners, takes no larger seed.
Seed: TypeAlias = Annotated[int, Meta(ge=0, le=2**32 - 1)]
Text: TypeAlias = Annotated[str, Meta(min_length=1)]
Wait: TypeAlias = Annotated[float, Meta(ge=0, le=LONGEST_S)]
End: TypeAlias = Annotated[float, Meta(ge=-(10**12), le=10**12)]

_HOUR = r"(\d|1\d|2[0-4])"
# First and last hour of a span of the day.
Hours: TypeAlias = Annotated[
    str, Meta(pattern=rf"^{_HOUR}-{_HOUR}\Z", extra={"expected": 'a span of hours, as "7-23"'})
]

T = TypeVar("T")

DEFAULT_SEED = 1


class Learner(Section, frozen=True, kw_only=True):
    """A learner of streamgp, such as the Gaussian process ("gp"), or a River learner by path."""

    name: Text = "gp"
    length_scale: Positive | None = None
    noise_variance: Positive | None = None
    max_points: Count | Literal["all"] | None = None
    learn_hyperparameters: bool | None = None
    window: Count | None = None
    drift: bool = False
    options: dict[str, Any] = msgspec.field(default_factory=dict)


class Temporal(Section, frozen=True, kw_only=True):
    """The temporal filter of predictions, see `streamgp.TemporalFilter`; for labels."""

    enabled: bool | None = None


class Drift(Section, frozen=True, kw_only=True):
    """The test for concept drift, see `streamgp.DriftTest`; for labels."""

    enabled: bool | None = None
    at_least: Share | None = None
    run_length: Annotated[float, Meta(gt=1)] = 10_000.0


class Annotator(Section, frozen=True, kw_only=True):
    """A simulated annotator; `delay` is in seconds of the log's time.

    One with a `tiring_rate` tires, see `streamgp.TiredAnnotator`; only then do `half_life_s`,
    `response_s`, `slowing` and `response_spread` apply. `noise`, `outlier` and `states_noise` are
    for numbers, see `streamgp.SimulatedMeasurer`. One with `hours` is away at all other hours, see
    `streamgp.simulation.AwayAnnotator`.
    """

    name: Text | None = None
    error_rate: Share = 0.0
    tiring_rate: NonNegative = 0.0
    half_life_s: Seconds = 3600.0
    response_s: Seconds = 2.0
    slowing: Annotated[float, Meta(ge=0, le=10**6)] = 0.05
    response_spread: Annotated[float, Meta(ge=0, le=10)] = 0.25
    delay: Wait = 0.0
    decline_rate: Share = 0.0
    stubborn: bool = False
    classes: Annotated[tuple[Label, ...], Meta(min_length=1)] | None = None
    noise: NonNegative = 0.0
    outlier: NonNegative = 5.0
    states_noise: bool = False
    hours: Annotated[tuple[Hours, ...], Meta(min_length=1)] | None = None
    seed: Seed | None = None


OF_TIRED = ("tiring_rate", "half_life_s", "response_s", "slowing", "response_spread")
"""The settings of an annotator who tires."""


class Log(Section, frozen=True, kw_only=True):
    """The columns of the log."""

    label: Text | None = None
    time: Text | None = None
    key: Text | None = None
    ignore: tuple[Text, ...] = ()
    features: tuple[Text, ...] | None = None
    limit: Count | None = None


class Windows(Section, frozen=True, kw_only=True):
    """Windows over raw rows, see `streamgp.windows.Windows`; each window is an event."""

    length_s: Seconds
    hop_s: Seconds | None = None
    features: tuple[Text, ...] = ("basic",)
    vectors: tuple[tuple[Text, ...], ...] = ()
    gps: tuple[Text, ...] | None = None
    grace_s: Wait = 0.0
    min_rows: Count = 1
    max_rows: Count = 100_000
    min_purity: Share = 0.0
    idle_s: Wait = 60.0
    excerpt: bool = True
    zone: Text = "UTC"


class Questions(Section, frozen=True, kw_only=True):
    """How many questions annotators are asked; limits are for each key.

    The first `at_start` questions of a key do not count towards `per_day`.
    """

    per_day: Count | None = None
    at_start: Limit = 0
    per_hour: Count | None = None
    open_at_most: Count | None = None
    order: Literal["useful", "newest", "oldest"] = "useful"
    availability: bool = False
    overlap: Share = 0.0
    repeat: Share = 0.0

    def budgets(self) -> tuple[RuleSection, ...]:
        """Return the budgets that implement these settings.

        Examples
        --------
        >>> Questions(per_day=30).budgets()
        (PacedBudget(n=30, span_s=86400.0, at_start=0),)

        """
        limits = ((self.per_day, 86400.0, self.at_start), (self.per_hour, 3600.0, 0))
        paced = [
            section("budget", "paced", n=n, span_s=span_s, at_start=at_start)
            for n, span_s, at_start in limits
            if n is not None
        ]
        return (*paced, *([section("budget", "availability")] if self.availability else ()))


class People(Section, frozen=True, kw_only=True):
    """Permissions and limits of annotators, see `streamgp.interactive.People`."""

    owners: bool = DEFAULT_PEOPLE.owners
    supervisors: tuple[Text, ...] = ()
    quarantine: bool = DEFAULT_PEOPLE.quarantine
    trusted: tuple[Text, ...] = ()
    keys_file: SecretFile | None = None
    keys_env: Variable | None = None
    max_labels: Count = DEFAULT_PEOPLE.max_labels
    max_features: Count = DEFAULT_PEOPLE.max_features
    max_annotators: Count = DEFAULT_PEOPLE.max_annotators
    max_corrections: Count = DEFAULT_PEOPLE.max_corrections
    max_early_answers: Count = DEFAULT_PEOPLE.max_early_answers
    max_unasked_per_hour: Count = DEFAULT_PEOPLE.max_unasked_per_hour

    def state(self) -> dict[str, Any]:
        """Return the settings that are rules of loops, by their names there."""
        names = (field.name for field in fields(Rules))
        return {name: getattr(self, name) for name in names if hasattr(self, name)}


class Loop(Section, frozen=True, kw_only=True):
    """Expiry of requests, answer horizon of events, number of keys in memory."""

    expires_after_s: Seconds | None = None
    answer_horizon_s: Seconds | None = None
    max_keys: Count | None = None


class Config(Section, frozen=True, kw_only=True):
    """The whole file."""

    preset: Preset = "default"
    target: Target = "label"
    seed: Seed = DEFAULT_SEED
    warm_up: Annotated[int, Meta(ge=0)] | None = None
    rescale: Rescale | None = None
    learner: Learner = Learner()
    temporal: Temporal = Temporal()
    drift_test: Drift = Drift()
    query: Query | None = None
    challenge: Challenge | None = None
    review: Review | None = None
    reservoir: Reservoir = msgspec.field(default_factory=partial(section, "reservoir", "never"))
    budget: Budget | None = None
    questions: Questions = Questions()
    people: People = People()
    total_budget: Budget = msgspec.field(default_factory=partial(section, "budget", "unlimited"))
    annotator: Annotator = Annotator()
    annotators: dict[Text, Annotator] = msgspec.field(default_factory=dict)
    log: Log = Log()
    windows: Windows | None = None
    loop: Loop = Loop()

    def rules(self) -> Rules:
        """Return the rules that loops enforce.

        Examples
        --------
        >>> config = Config(people=People(supervisors=("eve",)), questions=Questions(overlap=0.1))
        >>> config.rules().supervisors, config.rules().overlap
        (frozenset({'eve'}), 0.1)

        """
        shares = {"overlap": self.questions.overlap, "repeat": self.questions.repeat}
        return Rules.of({**self.people.state(), **shares})

    def loop_rules(self) -> LoopRules:
        """Return the arguments of loops besides their model."""
        return LoopRules(
            expires_after_s=self.loop.expires_after_s,
            answer_horizon_s=self.loop.answer_horizon_s,
            open_at_most=self.questions.open_at_most,
            people=self.rules(),
        )


@cache
def preset(name: Preset, target: Target = "label") -> Config:
    """Return the values of a preset, as in `streamgp.isgp`; a test keeps the two in step."""
    query, challenge = section("query", "skeptical"), section("challenge", "skeptical")
    if name == "paper":
        query, challenge = section("query", "paper"), section("challenge", "paper")
    budget = section("budget", "unlimited")
    if target == "number":
        query, challenge = section("query", "variance"), section("challenge", "outside_interval")
        # Every number is uncertain: without a rate, the rule would ask for all of them.
        budget = section("budget", "rate", rate=0.1)
    learner = Learner(noise_variance=0.5, max_points=500, learn_hyperparameters=False)
    if target == "number":
        learner = replace(learner, noise_variance=0.1, learn_hyperparameters=True)
    if name == "paper":
        learner = replace(learner, length_scale=2.0, noise_variance=1e-16, max_points="all")
        learner = replace(learner, learn_hyperparameters=False)
    return Config(
        preset=name,
        warm_up=200 if name == "default" else 0,
        rescale=name == "default" and target == "label",
        learner=learner,
        temporal=Temporal(enabled=name == "default" and target == "label"),
        drift_test=Drift(enabled=name == "default" and target == "label", at_least=0.005),
        query=query,
        challenge=challenge,
        review=section("review", "leave_one_out" if target == "number" else "never"),
        budget=budget,
    )


def resolved(config: Config) -> Config:
    """Fill in the values of the preset, so that the result is complete.

    Examples
    --------
    >>> resolved(Config()).challenge
    SkepticalChallenge(threshold=0.1, doubts_new=False)
    >>> resolved(Config(preset="paper", challenge=section("challenge", "never"))).challenge
    NeverChallenge()

    """
    given = preset(config.preset, config.target)
    learner = _learner(config.learner, given.learner)
    review = given.review
    believes = config.challenge is not None and config.challenge.rule() == "never"
    if config.target == "number" and (learner.name != "gp" or believes):
        # Others cannot leave an example out, and who believes new numbers believes old ones.
        review = section("review", "never")
    never_asks = config.query is not None and config.query.rule() == "never"
    return replace(
        config,
        learner=learner,
        temporal=Temporal(enabled=_first(config.temporal.enabled, given.temporal.enabled)),
        drift_test=replace(
            config.drift_test,
            # It believes what a learner says of itself, and most are surer than they should be.
            enabled=_first(
                config.drift_test.enabled, given.drift_test.enabled and learner.name == "gp"
            ),
            # Who asks for no label is not asked any; labels that come with events are still tested.
            at_least=_first(
                config.drift_test.at_least, 0.0 if never_asks else given.drift_test.at_least
            ),
        ),
        warm_up=_first(config.warm_up, given.warm_up),
        # Its benefit was measured for the Gaussian process only.
        rescale=_first(config.rescale, given.rescale and learner.name == "gp"),
        query=_first(config.query, given.query),
        challenge=_first(config.challenge, given.challenge),
        review=_first(config.review, review),
        budget=_budget(config, given),
        # Cleared, so that resolving twice changes nothing.
        questions=replace(
            config.questions, per_day=None, at_start=0, per_hour=None, availability=False
        ),
    )


def _learner(own: Learner, usual: Learner) -> Learner:
    if own.name != "gp":
        return own
    # A window is itself a bound, in place of the preset's.
    bound = usual.max_points if own.window is None else None
    # A kernel has a length scale of its own.
    scale = None if "kernel" in own.options else usual.length_scale
    return replace(
        own,
        length_scale=_first(own.length_scale, scale),
        noise_variance=_first(own.noise_variance, usual.noise_variance),
        max_points=_first(own.max_points, bound),
        learn_hyperparameters=_first(own.learn_hyperparameters, usual.learn_hyperparameters),
    )


def _budget(config: Config, given: Config) -> RuleSection | None:
    # An explicit query strategy is not limited by the preset's budget.
    usual = given.budget if config.query is None else section("budget", "unlimited")
    own = _first(config.budget, usual)
    of_questions = config.questions.budgets()
    if not of_questions:
        return own
    # A limit on questions replaces the preset's; availability is not a limit.
    if config.questions.per_day is not None or config.questions.per_hour is not None:
        own = config.budget
    if own is not None and own.rule() != "unlimited":
        of_questions = (*of_questions, own)
    if len(of_questions) == 1:
        return of_questions[0]
    return section("budget", "all_of", budgets=of_questions)


def _first(value: T, default: T) -> T:
    return default if value is None else value


# --- The settings of a worker: its broker, its topics, and how it works.
# They are in the same file as those of a replay, which ignores them. Secrets are never settings;
# only the places where they are kept are.


# Allowed by Kafka in names of topics, and safe as the name of a directory.
_NAME = r"(?!\.{1,2}\Z)[a-zA-Z0-9._-]{1,200}\Z"
_NAME_WORDS = 'a name of at most 200 ASCII letters, digits, ".", "_" and "-"'
Name: TypeAlias = Annotated[str, Meta(pattern=f"^{_NAME}", extra={"expected": _NAME_WORDS})]
Prefix: TypeAlias = Annotated[
    str,
    Meta(
        pattern=r"^[a-zA-Z0-9._-]{0,150}\Z",
        extra={"expected": 'at most 150 ASCII letters, digits, ".", "_" and "-"'},
    ),
]
# Users paste the secret itself here: keep it out of logs.
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
    """Authentication at the broker, and verification of the broker."""

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
    """Address of the topics."""

    url: Url
    security: Security = Security()


class Topics(Section, frozen=True, kw_only=True):
    """Names of the topics, and how they are created."""

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
        """Return the name of each topic on the broker.

        Examples
        --------
        >>> Topics(prefix="rooms.", dead_letters="refused").names()["dead-letters"]
        'rooms.refused'

        """
        return {role: self.prefix + getattr(self, field) for role, field in TOPIC_FIELDS.items()}


TOPIC_FIELDS: dict[TopicName, str] = {role: role.replace("-", "_") for role in ALL_TOPICS}
"""The setting of each topic."""


class Worker(Section, frozen=True, kw_only=True):
    """Settings of a worker."""

    group: Name = "streamgp"
    instance: Name | None = None
    keyed: bool = True
    state: FilePath = "streamgp-state"
    batch: Annotated[int, Meta(ge=1, le=100_000)] = 1000
    save_every_s: Seconds = 30.0
    max_bad_share: Share = 0.5
    leave: bool = False


def _words(most: int) -> Meta:
    expected = f"a text of at most {most} characters, not blank"
    return Meta(pattern=r"\S", max_length=most, extra={"expected": expected})


class Page(Section, frozen=True, kw_only=True):
    """What annotators are told and offered: the question, labels, or how to enter a number."""

    question: Annotated[str, _words(200)] | None = None
    guidelines: Annotated[str, _words(10_000)] | None = None
    labels: tuple[Label, ...] = ()
    unit: Text | None = None
    low: End | None = None
    high: End | None = None


class Observe(Section, frozen=True, kw_only=True):
    """Where a worker serves metrics and its health; nowhere without `bind`."""

    bind: Text | None = None
    annotators: bool = False


class WorkerConfig(Config, frozen=True, kw_only=True):
    """The whole file: settings of replays, of workers, and of what annotators see."""

    broker: Broker | None = None
    topics: Topics = Topics()
    worker: Worker = Worker()
    page: Page = Page()
    observe: Observe = Observe()


def replay_part(config: WorkerConfig) -> Config:
    """Return the settings that a replay uses.

    Examples
    --------
    >>> replay_part(WorkerConfig(seed=7, worker=Worker(batch=10))) == Config(seed=7)
    True

    """
    return Config(**{name: getattr(config, name) for name in Config.__struct_fields__})
