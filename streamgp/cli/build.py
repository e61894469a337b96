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
from streamgp.cli import settings
from streamgp.cli.validation import ConfigError, unknown
from streamgp.interactive import InteractiveLoop, KeyedLoops, SimulatedAnnotator
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
    return skeptical.SkepticalClassifier(
        build_learner(config.learner, config.seed, source=source),
        query=_construct(_QUERIES, config.query),
        challenge=_construct(_CHALLENGES, config.challenge),
        budget=_build_budget(config),
        warm_up=0 if config.warm_up is None else config.warm_up,
        seed=config.seed,
    )


def build_learner(learner: settings.Learner, seed: int, *, source: str) -> Classifier:
    """Build the Gaussian process, or find and build a River classifier."""
    if learner.name == "gp":
        scale, noise = learner.length_scale, learner.noise_variance
        kernel = None if scale is None else SquaredExponential(length_scale=scale)
        return GPClassifier(kernel) if noise is None else GPClassifier(kernel, noise)
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
    config: settings.Config, *, source: str = "configuration"
) -> InteractiveLoop | KeyedLoops:
    """Build one loop, or, where the log has a key column, one loop per key."""
    make = InteractiveLoop if config.log.key is None else KeyedLoops
    return make(
        build_model(config, source=source),
        expires_after_s=config.loop.expires_after_s,
        answer_horizon_s=config.loop.answer_horizon_s,
    )


def build_annotator(config: settings.Config) -> SimulatedAnnotator:
    """Build the simulated annotator; without a seed of its own it gets that of the rules."""
    annotator = config.annotator
    return SimulatedAnnotator(
        error_rate=annotator.error_rate,
        delay=annotator.delay,
        decline_rate=annotator.decline_rate,
        stubborn=annotator.stubborn,
        seed=config.seed if annotator.seed is None else annotator.seed,
    )


def _build_budget(config: settings.Config) -> Any:
    if isinstance(config.budget, settings.Rate):  # the only one that draws
        rate = config.budget
        return budgets.RateBudget(
            rate.rate, window=rate.window, horizon=rate.horizon, seed=config.seed
        )
    return _construct(_BUDGETS, config.budget)


def _construct(classes: Mapping[type, Any], rule: msgspec.Struct | None) -> Any:
    return None if rule is None else classes[type(rule)](**msgspec.structs.asdict(rule))
