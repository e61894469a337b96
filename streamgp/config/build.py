"""From a configuration to objects: learner, rules, budget, loop, annotator.

`streamgp.query.registry` maps names to classes. Learners are imported when one is built: with
numpy, scipy and River they take longer to load than most commands take to run.

"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import msgspec

from streamgp.base import Budget, CountingBudget, Target
from streamgp.common.signatures import lacking
from streamgp.config import settings
from streamgp.config.rules import build_rule, find
from streamgp.config.validation import ConfigError, nearest, shown, unknown
from streamgp.interactive import InteractiveLoop, KeyedLoops
from streamgp.interactive.loop_cache import LoopStore
from streamgp.query.registry import LEARNERS, Kind
from streamgp.simulation import (
    AnnotatorPanel,
    AwayAnnotator,
    SimulatedAnnotator,
    SimulatedMeasurer,
    TiredAnnotator,
)

if TYPE_CHECKING:
    from river.base import Classifier, Regressor

    from streamgp.interactive.event_windows import EventWindows
    from streamgp.query.skeptical_classifier import SkepticalClassifier
    from streamgp.query.skeptical_regressor import SkepticalRegressor

Model: TypeAlias = "SkepticalClassifier | SkepticalRegressor"
Learner: TypeAlias = "Classifier | Regressor"


def build_model(config: settings.Config, *, source: str = "configuration") -> Model:
    """Build the skeptical classifier or regressor that a configuration describes.

    Raises
    ------
    ConfigError
        If the learner cannot be found, does not take its options or does not fit the scaling.

    Examples
    --------
    >>> from streamgp.config.rules import section
    >>> model = build_model(settings.Config(challenge=section("challenge", "never")))
    >>> model.warm_up, type(model.challenge).__name__
    (200, 'NeverChallenge')

    """
    from streamgp.query.drift_test import DriftTest
    from streamgp.query.skeptical_classifier import SkepticalClassifier
    from streamgp.query.skeptical_regressor import SkepticalRegressor
    from streamgp.query.temporal import TemporalFilter

    config = settings.resolved(config)
    _check_second_questions(config, source)
    learner: Any = build_learner(config.learner, config.seed, target=config.target, source=source)
    shared: dict[str, Any] = {
        **{kind: _build(kind, config, source) for kind in _ALWAYS},
        "warm_up": 0 if config.warm_up is None else config.warm_up,
        "seed": config.seed,
    }
    retrospective = {kind: _build(kind, config, source) for kind in _RETROSPECTIVE}
    _check_retrospective(retrospective, config, learner, source)
    if config.target == "number":
        return SkepticalRegressor(learner, **shared, review=retrospective["review"])
    temporal = TemporalFilter() if config.temporal.enabled else None
    drift, drift_test = config.drift_test, None
    if drift.enabled:
        at_least = 0.0 if drift.at_least is None else drift.at_least
        drift_test = DriftTest(at_least, drift.run_length)
    rescale = config.rescale or False
    try:
        return SkepticalClassifier(
            learner,
            **shared,
            **retrospective,
            temporal=temporal,
            drift_test=drift_test,
            rescale=rescale,
        )
    except ValueError as error:  # a user's own pipeline that does not fit warm_up or rescale
        raise ConfigError(f"{source}: {error}") from error


def _check_second_questions(config: settings.Config, source: str) -> None:
    """Refuse second questions that could not be asked."""
    overlap, repeat = config.questions.overlap, config.questions.repeat
    if config.target == "number" and (overlap or repeat):
        raise ConfigError(
            f"{source}: questions.overlap and questions.repeat compare labels, expected 0 with "
            f'target = "number", got {overlap!r} and {repeat!r}'
        )
    if overlap + repeat > 1.0:
        raise ConfigError(
            f"{source}: questions.overlap and questions.repeat are shares of all questions, "
            f"expected a sum of at most 1, got {overlap!r} and {repeat!r}"
        )


# Rules that a model always has, and rules for questions about earlier events.
_ALWAYS: tuple[Kind, ...] = ("query", "challenge", "budget")
_RETROSPECTIVE: tuple[Kind, ...] = ("review", "reservoir")


def _build(kind: Kind, config: settings.Config, source: str) -> Any:
    rule = getattr(config, kind)
    return build_rule(kind, rule, seed=config.seed, source=source, path=kind)


def _check_retrospective(
    retrospective: Mapping[Kind, Any], config: settings.Config, learner: Learner, source: str
) -> None:
    from streamgp.query.skeptical_base import check_reservoir

    review = config.review
    assert review is not None  # the preset sets it
    if retrospective["review"] is not None and not hasattr(learner, "leave_one_out"):
        raise ConfigError(
            f'{source}: review.rule = "{review.rule()}" is not allowed with learner.name = '
            f'"{config.learner.name}", which cannot leave an example out; expected "never"'
        )
    try:
        check_reservoir(retrospective["reservoir"], learner)
    except (TypeError, ValueError) as error:
        raise ConfigError(
            f'{source}: reservoir.rule = "{config.reservoir.rule()}" is not allowed: {error}'
        ) from None


def build_learner(
    learner: settings.Learner, seed: int, *, target: Target = "label", source: str
) -> Learner:
    """Build one of streamgp's learners, or find and build one of River's."""
    from streamgp.learners.river_adapters import as_classifier, split
    from streamgp.query.skeptical_base import as_regressor

    if learner.name == "gp":
        return _gaussian_process(learner, target, source)
    name, options = learner.name, dict(learner.options)
    cls = find_learner(name, target=target, source=source)
    arguments = inspect.signature(cls).parameters
    if not any(one.kind is one.VAR_KEYWORD for one in arguments.values()):
        for option in options:
            if option not in arguments:
                raise ConfigError(
                    f"{source}: {unknown(f'learner.options.{option}', option, arguments)}"
                )
    if "seed" in arguments:  # otherwise no two runs would be the same
        options.setdefault("seed", seed)
    for option in _OBJECTS & options.keys():
        options[option] = _object(option, options[option], f"{source}: learner.options.{option}")
    try:
        built: Learner = cls(**options)
    except (TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise ConfigError(
            f"{source}: learner.options: {name} cannot be built with them: {error}"
        ) from None
    try:
        split(built, as_classifier if target == "label" else as_regressor)
    except TypeError as error:
        raise ConfigError(f'{source}: learner.name = "{name}" is not allowed: {error}') from None
    return built


# Options whose values are objects, which a file names as `module:name`.
_OBJECTS = frozenset(("kernel", "privileged_kernel", "kernels", "model"))


def _object(option: str, named: object, where: str) -> Any:
    if isinstance(named, list):
        return [_object(option, each, f"{where}[{i}]") for i, each in enumerate(named)]
    if not isinstance(named, str) or ":" not in named:
        raise ConfigError(
            f"{where} = {shown(named)} is not allowed, expected what makes an object, as in "
            '"streamgp.kernels:Matern52" or "my_kernels:weekly"'
        )
    from streamgp.kernels import Kernel

    made = find(named, f'{where} = "{named}"')()
    missing = [] if option == "model" else lacking(made, Kernel)
    if missing:
        raise ConfigError(
            f'{where} = "{named}" gives {made!r}, which is not a kernel: it lacks '
            f"{', '.join(missing)}"
        )
    return made


def _gaussian_process(learner: settings.Learner, target: Target, source: str) -> Learner:
    from streamgp.kernels import SquaredExponential
    from streamgp.learners.gp_classifier import GPClassifier
    from streamgp.learners.gp_regressor import GPRegressor

    learner = settings.resolved(settings.Config(learner=learner, target=target)).learner
    scale, noise = learner.length_scale, learner.noise_variance
    assert noise is not None  # the preset sets it
    learn = learner.learn_hyperparameters
    assert learn is not None
    try:
        kernel = None if scale is None else SquaredExponential(length_scale=scale)
    except ValueError as error:  # so small that its inverse is infinite
        raise ConfigError(f"{source}: learner.{error}; give one above 1e-300") from None
    if "kernel" in learner.options:
        kernel = _object("kernel", learner.options["kernel"], f"{source}: learner.options.kernel")
    points = None if learner.max_points == "all" else learner.max_points
    if target == "number":  # `check_config` has refused window and drift
        return GPRegressor(kernel, noise, points, learn)
    return GPClassifier(kernel, noise, points, learn, window=learner.window, drift=learner.drift)


def find_learner(name: str, *, target: Target = "label", source: str) -> Callable[..., Any]:
    """Find a learner of streamgp by its name, or import another one by its path.

    Paths are `module:name`, or dotted paths for River.

    Examples
    --------
    >>> find_learner("river.naive_bayes.GaussianNB", source="my.toml").__name__
    'GaussianNB'

    """
    where = f"{source}: learner.name = {shown(name)}"
    if name in LEARNERS:
        classes = LEARNERS[name].classes
        if target not in classes:
            raise ConfigError(f'{where} is not allowed with target = "number": it is for labels')
        return find(classes[target], where)
    if ":" in name:
        return find(name, where)
    return _of_river(name, target, where)


def _of_river(name: str, target: Target, where: str) -> type[Learner]:
    from river.base import Classifier, Regressor

    kind, example = "classifier", "river.naive_bayes.GaussianNB"
    wanted: type[Learner] = Classifier
    if target == "number":
        wanted, kind, example = Regressor, "regressor", "river.tree.HoeffdingTreeRegressor"
    module_name, _, class_name = name.rpartition(".")
    if module_name.split(".")[0] != "river" or not name.replace(".", "").isidentifier():
        own = ["gp", *(one for one in LEARNERS if target in LEARNERS[one].classes)]
        quoted, near = ", ".join(f'"{one}"' for one in own), nearest(name, own)
        raise ConfigError(
            f"{where} is not allowed, expected {quoted} or the path of a River {kind}, as in "
            f'"{example}", or of one of your own, as in "my_learners:MyLearner"'
            f"{f'; {near}' if near else ''}"
        )
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        raise ConfigError(f"{where} is not allowed: {error}") from None

    def is_one(cls: object) -> bool:
        return isinstance(cls, type) and issubclass(cls, wanted) and not inspect.isabstract(cls)

    cls: Any = getattr(module, class_name, None)
    if not is_one(cls):
        there = ", ".join(key for key, value in vars(module).items() if is_one(value))
        raise ConfigError(f"{where} is not a River {kind}; {module_name} has {there or 'none'}")
    found: type[Learner] = cls
    return found


def build_loop(
    config: settings.Config,
    *,
    source: str,
    store: LoopStore | None = None,
    snapshot: bytes | None = None,
) -> InteractiveLoop | KeyedLoops:
    """Build one loop, or, if the log has a key column, one loop per key.

    Parameters
    ----------
    snapshot
        Snapshot of such a loop to continue from, or None to start over.

    Raises
    ------
    ConfigError
        If the learner cannot be found or does not take its options.
    SnapshotError
        If the snapshot is not of such a loop.

    """
    model, spans = build_model(config, source=source), config.loop
    rules = config.loop_rules().arguments
    total = build_total_budget(config, source=source)
    if config.log.key is None:
        if total is not None:
            raise ConfigError(
                f"{source}: total_budget needs a learner for each key, but there is no key column; "
                "name one (--key COLUMN), or put the limit into [budget]"
            )
        if snapshot is not None:
            return InteractiveLoop.restore(snapshot, model)
        return InteractiveLoop(model, **rules)
    if snapshot is not None:
        return KeyedLoops.restore(
            snapshot, model, max_keys=spans.max_keys, store=store, total_budget=total
        )
    return KeyedLoops(model, max_keys=spans.max_keys, store=store, total_budget=total, **rules)


def build_windows(
    config: settings.Config,
    *,
    label: Literal["y", "truth"],
    source: str,
    keep_changes: bool = False,
) -> EventWindows | None:
    """Build the windows that turn raw rows into events; None if the configuration has none.

    Parameters
    ----------
    label
        Field of the rows from which the label of a window is made.

    Raises
    ------
    ConfigError
        If a feature is unknown, or a setting does not fit the others.

    """
    section = config.windows
    if section is None:
        return None
    from streamgp.interactive.event_windows import EventWindows

    options: dict[str, Any] = msgspec.structs.asdict(section)
    where = f"{source}: windows.features"
    options["features"] = [
        find(name, f'{where} = "{name}"') if ":" in name else name for name in section.features
    ]
    try:
        return EventWindows(label=label, keep_changes=keep_changes, **options)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"{source}: windows: {error}") from None


def build_labelled_windows(config: settings.Config) -> EventWindows | None:
    """Build the windows of `build_windows` for their true labels alone, with a single feature.

    Functions that the configuration names as features are not imported: programs that read what
    workers write need not have them.
    """
    section = config.windows
    if section is None:
        return None
    section = msgspec.structs.replace(section, features=("mean",), excerpt=False)
    config = msgspec.structs.replace(config, windows=section)
    return build_windows(config, label="truth", source="configuration")


def build_annotator(
    config: settings.Config,
) -> SimulatedAnnotator | AwayAnnotator | AnnotatorPanel:
    """Build the simulated annotator, or a panel of several.

    An annotator without a seed of its own gets that of the configuration.

    Examples
    --------
    >>> build_annotator(settings.Config(annotator=settings.Annotator(error_rate=0.2))).error_rate
    0.2

    """
    if not config.annotators:
        annotator = config.annotator
        return _one_annotator(config, annotator, annotator.name or "simulated")
    several = [_one_annotator(config, one, name) for name, one in config.annotators.items()]
    return AnnotatorPanel(several, seed=config.seed)


def _one_annotator(
    config: settings.Config, annotator: settings.Annotator, name: str
) -> SimulatedAnnotator | AwayAnnotator:
    seed = config.seed
    options: dict[str, Any] = msgspec.structs.asdict(annotator)
    tiring = {key: options.pop(key) for key in settings.OF_TIRED}
    measuring = {key: options.pop(key) for key in ("noise", "outlier", "states_noise")}
    options["name"] = name
    hours = options.pop("hours")
    if annotator.seed is None:
        options["seed"] = seed
    if config.target == "number":
        del options["classes"]
        built: SimulatedAnnotator = SimulatedMeasurer(**options, **measuring)
    elif annotator.tiring_rate:
        built = TiredAnnotator(**options, **tiring)
    else:
        built = SimulatedAnnotator(**options)
    if hours is None:
        return built
    spans = [[int(hour) for hour in span.split("-")] for span in hours]
    return AwayAnnotator(built, [(first, last) for first, last in spans])


def build_total_budget(config: settings.Config, *, source: str) -> Budget | None:
    """Build the budget for all keys together; None if there is none."""
    rule = config.total_budget
    if rule.rule() == "unlimited":
        return None
    built: Budget = build_rule("budget", rule, seed=config.seed, source=source, path="total_budget")
    return built


def build_counting_budgets(
    config: settings.Config,
) -> tuple[CountingBudget | None, CountingBudget | None]:
    """Build `[budget]` and `[total_budget]`, each None if it cannot tell how much is left.

    A user's own budget is None, too: it may not be installed where annotators are served.
    """
    rule = settings.resolved(config).budget
    assert rule is not None  # the preset sets it
    sections = {"budget": rule, "total_budget": config.total_budget}
    built = [
        None
        if ":" in rule.rule()
        else build_rule("budget", rule, seed=config.seed, source="configuration", path=path)
        for path, rule in sections.items()
    ]
    of_key, total = (budget if isinstance(budget, CountingBudget) else None for budget in built)
    return of_key, total
