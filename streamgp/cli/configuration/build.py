"""From a configuration to objects: learner, rules, budget, loop, annotator.

The only module that knows which class a name in the configuration stands for.

"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Mapping
from typing import Any

import msgspec
from river.base import Classifier

from streamgp import query as rules
from streamgp.cli.configuration import settings
from streamgp.cli.configuration.validation import ConfigError, unknown
from streamgp.interactive import (
    AnnotatorPanel,
    InteractiveLoop,
    KeyedLoops,
    SimulatedAnnotator,
    TiredAnnotator,
)
from streamgp.interactive.shelf import Shelf
from streamgp.kernels import SquaredExponential
from streamgp.learners.gp_classifier import GPClassifier
from streamgp.query import budgets, skeptical

_QUERIES: Mapping[type, Any] = {
    settings.Paper: rules.PaperAsk,
    settings.SkepticalQuery: rules.SkepticalAsk,
    settings.Always: rules.AlwaysAsk,
    settings.Never: rules.NeverAsk,
    settings.Random: rules.RandomAsk,
    settings.Entropy: rules.Entropy,
    settings.LeastConfidence: rules.LeastConfidence,
    settings.BestVersusSecond: rules.BestVersusSecond,
}
_CHALLENGES: Mapping[type, Any] = {
    settings.Paper: rules.PaperChallenge,
    settings.SkepticalChallenge: rules.SkepticalChallenge,
    settings.Always: rules.AlwaysChallenge,
    settings.Never: rules.NeverChallenge,
}
_BUDGETS: Mapping[type, Any] = {
    settings.Unlimited: budgets.Unlimited,
    settings.AtMost: budgets.AtMost,
    settings.AtMostPer: budgets.AtMostPer,
}


def build_model(
    config: settings.Config, *, source: str = "configuration"
) -> skeptical.SkepticalClassifier:
    """Build the skeptical classifier that a configuration describes.

    Parameters
    ----------
    config
        What to build.
    source
        Where the configuration came from, named in front of error messages.

    Raises
    ------
    ConfigError
        If the learner cannot be found or does not take its options.

    Examples
    --------
    >>> model = build_model(settings.Config(challenge=settings.Never()))
    >>> model.warm_up, type(model.challenge).__name__
    (200, 'NeverChallenge')

    """
    config = settings.resolved(config)
    learner = build_learner(config.learner, config.seed, source=source)
    return skeptical.SkepticalClassifier(
        learner,
        query=_construct(_QUERIES, config.query),
        challenge=_construct(_CHALLENGES, config.challenge),
        budget=_build_budget(config.budget, config.seed),
        warm_up=0 if config.warm_up is None else config.warm_up,
        review=_build_review(config, learner, source=source),
        seed=config.seed,
    )


def build_learner(learner: settings.Learner, seed: int, *, source: str) -> Classifier:
    """Build the Gaussian process, or find and build a River classifier."""
    if learner.name == "gp":
        return _gaussian_process(learner)
    cls = find_classifier(learner.name, source=source)
    options = dict(learner.options)
    allowed = inspect.signature(cls).parameters
    for name in options:
        if name not in allowed:
            raise ConfigError(f"{source}: {unknown(f'learner.options.{name}', name, allowed)}")
    if "seed" in allowed:  # otherwise no two runs would be alike
        options.setdefault("seed", seed)
    try:
        return cls(**options)
    except (TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise ConfigError(
            f"{source}: learner.options: {learner.name} cannot be built with them: {error}"
        ) from None


def _gaussian_process(learner: settings.Learner) -> GPClassifier:
    learner = settings.resolved(settings.Config(learner=learner)).learner
    scale, noise = learner.length_scale, learner.noise_variance
    assert noise is not None  # the preset says it
    return GPClassifier(
        None if scale is None else SquaredExponential(length_scale=scale),
        noise,
        None if learner.max_points == "all" else learner.max_points,
        learner.learn_hyperparameters,
        window=learner.window,
        drift=learner.drift,
    )


def find_classifier(name: str, *, source: str) -> type[Classifier]:
    """Import a River classifier by its path, and nothing that is not one.

    Examples
    --------
    >>> find_classifier("river.naive_bayes.GaussianNB", source="my.toml").__name__
    'GaussianNB'

    """
    where = f'{source}: learner.name = "{name}"'
    module_name, _, class_name = name.rpartition(".")
    if module_name.split(".")[0] != "river" or not name.replace(".", "").isidentifier():
        raise ConfigError(
            f'{where} is not allowed, expected "gp" or the path of a River classifier, '
            'as in "river.naive_bayes.GaussianNB"'
        )
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        raise ConfigError(f"{where} is not allowed: {error}") from None
    cls = getattr(module, class_name, None)
    if not (isinstance(cls, type) and issubclass(cls, Classifier)) or inspect.isabstract(cls):
        there = ", ".join(
            key
            for key, value in vars(module).items()
            if isinstance(value, type)
            and issubclass(value, Classifier)
            and not inspect.isabstract(value)
        )
        raise ConfigError(f"{where} is not a River classifier; {module_name} has {there or 'none'}")
    return cls


def build_loop(
    config: settings.Config,
    *,
    source: str = "configuration",
    shelf: Shelf | None = None,
    snapshot: bytes | None = None,
) -> InteractiveLoop | KeyedLoops:
    """Build one loop, or, where the log has a key column, one loop per key.

    Parameters
    ----------
    config
        What to build.
    source
        Where the configuration came from, named in front of error messages.
    shelf
        Where the loops of keys wait that are not held ready; None for memory.
    snapshot
        Snapshot of such a loop to go on with, or None to begin anew.

    Raises
    ------
    ConfigError
        If the learner cannot be found or does not take its options.
    SnapshotError
        If the snapshot is not of such a loop.

    """
    model, spans = build_model(config, source=source), config.loop
    if config.log.key is None:
        if snapshot is not None:
            return InteractiveLoop.restore(snapshot, model)
        return InteractiveLoop(
            model,
            expires_after_s=spans.expires_after_s,
            answer_horizon_s=spans.answer_horizon_s,
        )
    if snapshot is not None:
        return KeyedLoops.restore(snapshot, model, max_keys=spans.max_keys, shelf=shelf)
    return KeyedLoops(
        model,
        expires_after_s=spans.expires_after_s,
        answer_horizon_s=spans.answer_horizon_s,
        max_keys=spans.max_keys,
        shelf=shelf,
    )


def build_annotator(config: settings.Config) -> SimulatedAnnotator | AnnotatorPanel:
    """Build the simulated annotator, or a panel of several.

    An annotator without a seed of its own gets that of the rules.

    Examples
    --------
    >>> build_annotator(settings.Config(annotator=settings.Annotator(error_rate=0.2))).error_rate
    0.2

    """
    if not config.annotators:
        annotator = config.annotator
        return _one_annotator(annotator, annotator.name or "simulated", config.seed)
    several = [_one_annotator(one, name, config.seed) for name, one in config.annotators.items()]
    return AnnotatorPanel(several, seed=config.seed)


def _one_annotator(annotator: settings.Annotator, name: str, seed: int) -> SimulatedAnnotator:
    options: dict[str, Any] = msgspec.structs.asdict(annotator)
    tiring = {key: options.pop(key) for key in ("tiring_rate", "half_life_s")}
    options["name"] = name
    if annotator.seed is None:
        options["seed"] = seed
    return (
        TiredAnnotator(**options, **tiring)
        if annotator.tiring_rate
        else SimulatedAnnotator(**options)
    )


def _build_review(
    config: settings.Config, learner: Classifier, *, source: str
) -> rules.LeaveOneOutReview | None:
    review = config.review
    if isinstance(review, settings.Never):
        return None
    if not hasattr(learner, "leave_one_out"):
        raise ConfigError(
            f'{source}: review.rule = "leave_one_out" is not allowed with learner.name = '
            f'"{config.learner.name}", which cannot leave an example out; expected "never"'
        )
    return rules.LeaveOneOutReview(
        threshold=review.threshold,
        every=review.every,
        budget=_build_budget(review.budget, config.seed),
    )


def _build_budget(budget: settings.Budget, seed: int) -> Any:
    if isinstance(budget, settings.Rate):  # the only one that draws
        return budgets.RateBudget(
            budget.rate, window=budget.window, horizon=budget.horizon, seed=seed
        )
    return _construct(_BUDGETS, budget)


def _construct(classes: Mapping[type, Any], rule: msgspec.Struct | None) -> Any:
    return None if rule is None else classes[type(rule)](**msgspec.structs.asdict(rule))
