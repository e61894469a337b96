"""From names in a configuration to the objects they stand for."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from river.naive_bayes import GaussianNB
from river.tree import HoeffdingTreeClassifier

from streamgp import presets
from streamgp.base import Rescale
from streamgp.common.fingerprint import described
from streamgp.config import settings
from streamgp.config.build import (
    build_annotator,
    build_counting_budgets,
    build_labelled_windows,
    build_learner,
    build_loop,
    build_model,
)
from streamgp.config.load import check_config
from streamgp.config.rules import section
from streamgp.config.settings import Annotator, Config, Drift, Learner, Questions, Temporal
from streamgp.config.validation import ConfigError
from streamgp.interactive import (
    AnnotatorPanel,
    Event,
    InteractiveLoop,
    KeyedLoops,
    SimulatedAnnotator,
    TiredAnnotator,
)
from streamgp.learners.boosting import (
    ConfidenceBoostingClassifier,
    OnlineGradientBoostingClassifier,
)
from streamgp.learners.ensemble_gp import EnsembleGPClassifier, EnsembleGPRegressor
from streamgp.learners.forest import OnlineForestClassifier
from streamgp.learners.gp_classifier import GPClassifier
from streamgp.learners.gp_regressor import GPRegressor
from streamgp.learners.privileged_gp import PrivilegedGPClassifier
from streamgp.query import (
    KL,
    AdaptiveThreshold,
    Deterministic,
    EqualErrorAsk,
    RecentEventsAsk,
    SkepticalRegressor,
    Variance,
    budgets,
    strategies,
)
from streamgp.query import retrospective as rules_of_review
from streamgp.query.drift_test import DriftTest
from streamgp.query.temporal import TemporalFilter
from streamgp.simulation import AwayAnnotator


@pytest.mark.parametrize("preset", ["default", "paper"])
def test_configured_preset_is_the_preset_of_the_library(preset: Any) -> None:
    built = build_model(Config(preset=preset, seed=3))
    model = presets.isgp(preset, seed=3)
    assert (built.query, built.challenge) == (model.query, model.challenge)
    assert (built.warm_up, built.seed) == (model.warm_up, model.seed)
    learner: Any = built.model
    expected: Any = model.model
    assert type(learner) is type(expected)
    assert learner.kernel == expected.kernel
    assert learner.noise_variance == expected.noise_variance
    assert built.fingerprint() == model.fingerprint()


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (Config(), DriftTest()),
        (Config(preset="paper"), None),
        (Config(preset="paper", drift_test=Drift(enabled=True)), DriftTest()),
        (Config(drift_test=Drift(enabled=False)), None),
        (Config(drift_test=Drift(run_length=50.0)), DriftTest(run_length=50.0)),
        (Config(learner=Learner(name="forest")), None),
        (
            Config(learner=Learner(name="forest"), drift_test=Drift(enabled=True)),
            DriftTest(),
        ),
        (Config(query=section("query", "random", rate=0.1)), DriftTest()),
        # It asks no question where none is wanted.
        (Config(query=section("query", "never")), DriftTest(at_least=0.0)),
        (
            Config(query=section("query", "never"), drift_test=Drift(at_least=0.1)),
            DriftTest(at_least=0.1),
        ),
    ],
)
def test_labels_are_tested_for_drift_where_the_preset_or_the_setting_says_so(
    config: Config, expected: DriftTest | None
) -> None:
    assert build_model(config).drift_test == expected  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (Config(), TemporalFilter),
        (Config(preset="paper"), None),
        (Config(temporal=Temporal(enabled=False)), None),
        (Config(preset="paper", temporal=Temporal(enabled=True)), TemporalFilter),
        (Config(learner=Learner(name="river.naive_bayes.GaussianNB")), TemporalFilter),
    ],
)
def test_a_temporal_filter_is_there_where_the_preset_or_the_setting_says_so(
    config: Config, expected: type[TemporalFilter] | None
) -> None:
    temporal = build_model(config).temporal
    assert temporal is None if expected is None else type(temporal) is expected


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (Config(), True),
        (Config(preset="paper"), False),
        (Config(rescale=False), False),
        (Config(rescale="recent"), "recent"),
        (Config(learner=Learner(name="river.naive_bayes.GaussianNB")), False),
        (Config(learner=Learner(name="river.naive_bayes.GaussianNB"), rescale=True), True),
        (Config(target="number"), None),
    ],
)
def test_scaling_is_renewed_where_the_preset_or_the_setting_says_so(
    config: Config, expected: Rescale | None
) -> None:
    assert getattr(build_model(config), "rescale", None) == expected


def test_a_pipeline_that_scales_is_not_scaled_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "own_pipeline.py").write_text(
        "from river import naive_bayes, preprocessing\n"
        "def build():\n"
        "    return preprocessing.StandardScaler() | naive_bayes.GaussianNB()\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    config = Config(learner=Learner(name="own_pipeline:build"), rescale=True)
    with pytest.raises(ConfigError, match=r"my\.toml: rescale must be False for a pipeline"):
        build_model(config, source="my.toml")


def test_numbers_are_not_scaled_again() -> None:
    config = Config(target="number", rescale=True)
    with pytest.raises(ConfigError, match=r'rescale is not allowed with target = "number"'):
        check_config(config, source="my.toml")


def test_numbers_have_no_temporal_filter() -> None:
    assert not settings.resolved(Config(target="number")).temporal.enabled
    config = Config(target="number", temporal=Temporal(enabled=True))
    with pytest.raises(ConfigError, match=r'temporal.enabled is not allowed with target = "numb'):
        check_config(config, source="my.toml")
    check_config(Config(target="number", temporal=Temporal(enabled=False)), source="my.toml")


def test_length_scale_and_noise_reach_the_gaussian_process() -> None:
    learner: Any = build_model(Config(learner=Learner(length_scale=3.0, noise_variance=0.1))).model
    assert learner.kernel.length_scale == 3.0
    assert learner.noise_variance == 0.1


LEARNERS = [
    (Learner(), GPClassifier(max_points=500)),
    (Learner(max_points="all"), GPClassifier()),
    (Learner(window=90), GPClassifier(window=90)),
    (Learner(window=90, drift=True), GPClassifier(window=90, drift=True)),
    (Learner(drift=True), GPClassifier(max_points=500, drift=True)),
    (
        Learner(learn_hyperparameters=True),
        GPClassifier(max_points=500, learn_hyperparameters=True),
    ),
]


@pytest.mark.parametrize(("setting", "learner"), LEARNERS)
def test_a_gaussian_process_is_built_with_its_settings(setting: Learner, learner: Any) -> None:
    built: Any = build_learner(setting, 1, source="my.toml")
    assert built._get_params() == learner._get_params()


RULES = [
    (section("query", "paper"), strategies.PaperAsk()),
    (section("query", "skeptical", c=2.0), strategies.SkepticalAsk(c=2.0)),
    (section("query", "skeptical", at_least=0.1), strategies.SkepticalAsk(at_least=0.1)),
    (section("query", "always"), strategies.AlwaysAsk()),
    (section("query", "never"), strategies.NeverAsk()),
    (section("query", "random", rate=0.2), strategies.RandomAsk(rate=0.2)),
    (section("query", "entropy", threshold=0.5), strategies.Entropy(threshold=0.5)),
    (
        section("query", "least_confidence", threshold=0.5),
        strategies.LeastConfidence(threshold=0.5),
    ),
    (
        section("query", "best_versus_second", threshold=0.5),
        strategies.BestVersusSecond(threshold=0.5),
    ),
    (section("query", "variance"), Variance()),
    (section("query", "kl", threshold=0.2, least_weight=0.1), KL(threshold=0.2, least_weight=0.1)),
    (section("query", "deterministic", threshold=0.3), Deterministic(threshold=0.3)),
    (section("query", "equal_error"), EqualErrorAsk()),
    (
        section("query", "equal_error", uncertainty="entropy", at_least=0.3, forgetting=0.9),
        EqualErrorAsk("entropy", at_least=0.3, forgetting=0.9),
    ),
]
ENSEMBLE = Learner(name="ensemble")


@pytest.mark.parametrize(("setting", "rule"), RULES)
def test_each_query_rule_is_built_with_its_settings(setting: Any, rule: object) -> None:
    compares = setting.rule() in ("kl", "deterministic")
    config = Config(query=setting, learner=ENSEMBLE if compares else Learner())
    assert described(build_model(config).query) == described(rule)


OF_NUMBERS = {"variance", "kl", "deterministic", "always", "never", "random"}


@pytest.mark.parametrize(("setting", "rule"), RULES)
def test_a_query_rule_judges_numbers_or_is_refused_by_the_library_too(
    setting: Any, rule: object
) -> None:
    config = Config(target="number", query=setting, learner=ENSEMBLE)
    if setting.rule() in OF_NUMBERS:
        check_config(config, source="my.toml")
        assert build_model(config).query == rule
        return
    with pytest.raises(ConfigError, match='is not allowed with target = "number", expected one of'):
        check_config(config, source="my.toml")
    with pytest.raises(TypeError, match="one for classes"):
        build_model(config)


def test_numbers_are_asked_about_by_their_variance_as_in_the_library() -> None:
    built: Any = build_model(Config(target="number"))
    assert built.query == Variance()
    assert SkepticalRegressor(GPRegressor())._query_rule == Variance()


@pytest.mark.parametrize(
    ("target", "cls"), [("label", EnsembleGPClassifier), ("number", EnsembleGPRegressor)]
)
def test_an_ensemble_is_built_by_target_with_its_options_and_the_seed(
    target: Any, cls: Any
) -> None:
    options = {"n_features": 20, "forgetting": 0.99, "preset": "paper", "n_initial": 5}
    learner = Learner(name="ensemble", options=options)
    built: Any = build_learner(learner, 5, target=target, source="my.toml")
    assert type(built) is cls
    assert built._get_params() == cls(**options, seed=5)._get_params()
    plain: Any = build_learner(ENSEMBLE, 5, target=target, source="my.toml")
    assert plain._get_params() == cls(seed=5)._get_params()


@pytest.mark.parametrize(
    ("name", "cls", "options"),
    [
        ("forest", OnlineForestClassifier, {"n_models": 3, "min_weight": 5}),
        ("confidence_boosting", ConfidenceBoostingClassifier, {"uncertainty": "entropy"}),
        ("gradient_boosting", OnlineGradientBoostingClassifier, {"normalise_weights": True}),
    ],
)
def test_forests_are_built_with_their_options_and_the_seed(
    name: str, cls: Any, options: Any
) -> None:
    built: Any = build_learner(Learner(name=name, options=options), 5, source="my.toml")
    assert type(built) is cls
    assert built._get_params() == cls(**options, seed=5)._get_params()
    for wrong in ("modell", "kernels"):
        with pytest.raises(ConfigError, match=rf"learner\.options\.{wrong} is not known"):
            build_learner(Learner(name=name, options={wrong: "x"}), 5, source="my.toml")
    message = rf'learner.name = "{name}" is not allowed with target = "number": it is for labels'
    with pytest.raises(ConfigError, match=message):
        build_learner(Learner(name=name), 5, target="number", source="my.toml")


def test_the_learner_of_privileged_noise_is_built_with_its_options() -> None:
    options = {
        "max_points": 50, "n_replays": 1, "preset": "paper", "learn_hyperparameters": False
    }  # fmt: skip
    built: Any = build_learner(Learner(name="privileged", options=options), 5, source="my.toml")
    assert type(built) is PrivilegedGPClassifier
    assert built._get_params() == PrivilegedGPClassifier(**options)._get_params()
    for wrong in ("kernel", "privileged_kernel"):
        with pytest.raises(
            ConfigError,
            match=rf'learner\.options\.{wrong} = "x" is not allowed, expected what makes an object',
        ):
            build_learner(Learner(name="privileged", options={wrong: "x"}), 5, source="my.toml")
    with pytest.raises(ConfigError, match="privileged cannot be built with them: max_points must"):
        build_learner(Learner(name="privileged", options={"max_points": 0}), 5, source="my.toml")
    with pytest.raises(ConfigError, match=r'not allowed with target = "number": it is for labels'):
        build_learner(Learner(name="privileged"), 5, target="number", source="my.toml")


def test_labels_learned_with_privileged_noise_are_not_reviewed() -> None:
    config = Config(learner=Learner(name="privileged"), review=section("review", "leave_one_out"))
    with pytest.raises(ConfigError, match='"privileged", which cannot leave an example out'):
        build_model(config, source="my.toml")


@pytest.mark.parametrize(
    ("target", "options", "message"),
    [
        (
            "label",
            {"kernels": ["rbf"]},
            r'learner\.options\.kernels\[0\] = "rbf" is not allowed, expected what makes an object',
        ),
        ("number", {"likelihood": "logistic"}, r"learner\.options\.likelihood is not known"),
        ("label", {"likelihood": "probit"}, "ensemble cannot be built with them: likelihood must"),
        ("number", {"forgetting": 2}, "ensemble cannot be built with them: forgetting must be"),
        ("number", {"n_features": "many"}, "ensemble cannot be built with them"),
        ("number", {"n_features": 10**8}, "n_features must be a whole number from 1 to 5000, got"),
        ("label", {"refit": "no"}, "them: refit must be True or False, got 'no'"),
    ],
)
def test_options_that_an_ensemble_does_not_take_are_reported(
    target: Any, options: Any, message: str
) -> None:
    learner = Learner(name="ensemble", options=options)
    with pytest.raises(ConfigError, match=message):
        build_learner(learner, 1, target=target, source="my.toml")


CHALLENGES = [
    (section("challenge", "paper"), strategies.PaperChallenge()),
    (
        section("challenge", "skeptical", threshold=0.3),
        strategies.SkepticalChallenge(threshold=0.3),
    ),
    (section("challenge", "always"), strategies.AlwaysChallenge()),
    (section("challenge", "never"), strategies.NeverChallenge()),
]


@pytest.mark.parametrize(("setting", "rule"), CHALLENGES)
def test_each_challenge_rule_is_built_with_its_settings(setting: Any, rule: object) -> None:
    assert build_model(Config(challenge=setting)).challenge == rule


BUDGETS = [
    (section("budget", "unlimited"), budgets.Unlimited()),
    (section("budget", "at_most", n=3), budgets.AtMost(3)),
    (section("budget", "at_most_per", n=3, span_s=60.0), budgets.AtMostPer(3, 60.0)),
    (
        section("budget", "rate", rate=0.2, window=9, horizon=4),
        budgets.RateBudget(0.2, window=9, horizon=4, seed=1),
    ),
    (section("budget", "paced", n=3, span_s=60.0), budgets.PacedBudget(3, 60.0)),
    (section("budget", "availability"), budgets.AvailabilityBudget()),
    (section("budget", "availability", exploration=0.0), budgets.AvailabilityBudget(0.0)),
    (section("budget", "adaptive", rate=0.2), AdaptiveThreshold(0.2)),
    (section("budget", "adaptive", rate=0.2, step=0.5), AdaptiveThreshold(0.2, step=0.5)),
]


@pytest.mark.parametrize(("setting", "budget"), BUDGETS)
def test_each_budget_is_built_with_its_settings(setting: Any, budget: object) -> None:
    built = build_model(Config(budget=setting)).budget
    assert type(built) is type(budget)
    assert repr(built) == repr(budget)


@pytest.mark.parametrize(("setting", "budget"), BUDGETS)
def test_a_review_is_built_with_its_settings_and_its_budget(setting: Any, budget: object) -> None:
    review = section("review", "leave_one_out", threshold=0.4, every=7, budget=setting)
    built: Any = build_model(Config(review=review)).review
    assert (built.threshold, built.every) == (0.4, 7)
    assert type(built.budget) is type(budget)
    assert repr(built.budget) == repr(budget)


def test_a_review_has_the_same_defaults_in_a_file_and_in_the_library() -> None:
    built: Any = build_model(Config(review=section("review", "leave_one_out"))).review
    review = rules_of_review.LeaveOneOutReview()
    assert (built.threshold, built.every) == (review.threshold, review.every)
    assert build_model(Config()).review is review.budget is None


def test_numbers_are_reviewed_if_their_learner_can_leave_an_example_out() -> None:
    models: list[Any] = [
        build_model(Config(target="number", **given))
        for given in (
            {},
            {"learner": Learner(name="ensemble")},
            {"review": section("review", "never")},
            {"challenge": section("challenge", "never")},
        )
    ]
    first, *others = (model.review for model in models)
    default = rules_of_review.LeaveOneOutReview()
    assert (first.threshold, first.every) == (default.threshold, default.every)
    assert others == [None, None, None]
    # What a worker has saved before there were such reviews is still its own.
    assert models[0].fingerprint() == models[2].fingerprint()


def test_a_learner_that_cannot_leave_an_example_out_has_no_review() -> None:
    learner = Learner(name="river.naive_bayes.GaussianNB")
    with pytest.raises(
        ConfigError,
        match=r'^my\.toml: review\.rule = "leave_one_out" is not allowed with learner\.name = '
        r'"river\.naive_bayes\.GaussianNB", which cannot leave an example out; expected "never"$',
    ):
        build_model(
            Config(learner=learner, review=section("review", "leave_one_out")), source="my.toml"
        )


@pytest.mark.parametrize(("setting", "budget"), BUDGETS)
def test_a_reservoir_is_built_with_its_settings_and_its_budget(
    setting: Any, budget: object
) -> None:
    latest = section(
        "reservoir", "latest", criterion="mvar", size=50, every=3, max_age_s=60.0, budget=setting
    )
    built: Any = build_model(Config(reservoir=latest)).reservoir
    assert (built.criterion, built.size, built.every, built.max_age_s) == ("mvar", 50, 3, 60.0)
    assert repr(built.budget) == repr(budget)


def test_a_reservoir_has_the_same_defaults_in_a_file_and_in_the_library() -> None:
    built: Any = build_model(Config(reservoir=section("reservoir", "latest"))).reservoir
    assert replace(built, budget=None) == RecentEventsAsk()
    assert build_model(Config()).reservoir is None


def test_a_learner_that_knows_events_one_by_one_only_has_no_reservoir() -> None:
    learner = Learner(name="river.naive_bayes.GaussianNB")
    with pytest.raises(
        ConfigError,
        match=r'^my\.toml: reservoir\.rule = "latest" is not allowed: reservoir needs a learner '
        r"that believes something of several events at once, which GaussianNB does not; take GPCl",
    ):
        build_model(
            Config(learner=learner, reservoir=section("reservoir", "latest")), source="my.toml"
        )
    with pytest.raises(
        ConfigError, match=r'"latest" is not allowed: .* noise_variance of at least'
    ):
        build_model(
            Config(preset="paper", reservoir=section("reservoir", "latest")), source="my.toml"
        )


def test_rate_budget_draws_by_the_seed() -> None:
    rate = section("budget", "rate", rate=0.2)
    built: Any = build_model(Config(budget=rate, seed=7)).budget
    assert built.seed == 7
    review: Any = build_model(
        Config(review=section("review", "leave_one_out", budget=rate), seed=7)
    ).review
    assert review.budget.seed == 7


def test_river_classifier_is_built_with_its_options() -> None:
    learner = Learner(name="river.tree.HoeffdingTreeClassifier", options={"grace_period": 50})
    built: Any = build_learner(learner, 1, source="my.toml")
    assert type(built) is HoeffdingTreeClassifier
    assert built.grace_period == 50


def test_river_classifier_that_draws_gets_the_seed_unless_it_has_its_own() -> None:
    name = "river.forest.AMFClassifier"
    built: Any = build_learner(Learner(name=name), 5, source="my.toml")
    assert built.seed == 5
    built = build_learner(Learner(name=name, options={"seed": 9}), 5, source="my.toml")
    assert built.seed == 9


def test_a_length_scale_without_a_finite_inverse_is_reported() -> None:
    learner = Learner(length_scale=1e-320, noise_variance=0.5, max_points=500)
    with pytest.raises(
        ConfigError,
        match=r"^my\.toml: learner\.length_scale must be .*, got 1e-320; give one above 1e-300$",
    ):
        build_learner(learner, 1, source="my.toml")


WRONG = {
    "os.system": (
        'learner.name = "os.system" is not allowed, expected "gp", "ensemble", "forest", '
    ),
    "GP": 'learner.name = "GP" is not allowed, expected "gp", "ensemble", "forest", ',
    "riverside.X": 'learner.name = "riverside.X" is not allowed, expected "gp", "ensemble", ',
    "river": 'learner.name = "river" is not allowed, expected "gp", "ensemble", "forest", ',
    "a\nb": 'learner.name = "a\\nb" is not allowed, expected "gp", "ensemble", ',
    "x" * 1000: f'learner.name = "{"x" * 57}..." is not allowed, expected "gp", "ensemble", ',
    "river..X": 'learner.name = "river..X" is not allowed',
    "river.a b.X": 'learner.name = "river.a b.X" is not allowed',
    "river.nothing.X": (
        "learner.name = \"river.nothing.X\" is not allowed: No module named 'river.nothing'"
    ),
    "river.naive_bayes.GausianNB": (
        'learner.name = "river.naive_bayes.GausianNB" is not a River classifier; '
        "river.naive_bayes has BernoulliNB, ComplementNB, GaussianNB, MultinomialNB"
    ),
    "river.linear_model.LinearRegression": (
        'learner.name = "river.linear_model.LinearRegression" is not a River classifier; '
        "river.linear_model has "
    ),
    "river.base.Classifier": (
        'learner.name = "river.base.Classifier" is not a River classifier; river.base has none'
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_learner_that_is_no_river_classifier_is_reported(name: str) -> None:
    with pytest.raises(ConfigError) as caught:
        build_learner(Learner(name=name), 1, source="my.toml")
    assert str(caught.value).startswith("my.toml: " + WRONG[name])


def test_a_misspelt_learner_is_reported_with_the_nearest_name() -> None:
    with pytest.raises(ConfigError, match=r'; did you mean "gradient_boosting"\?$'):
        build_learner(Learner(name="gradient_bosting"), 1, source="my.toml")


def test_unknown_option_is_reported_with_the_closest_one() -> None:
    learner = Learner(name="river.tree.HoeffdingTreeClassifier", options={"grace_perod": 50})
    with pytest.raises(
        ConfigError,
        match=r"^my\.toml: learner\.options\.grace_perod is not known, "
        r'did you mean "grace_period"\? \(allowed: grace_period, ',
    ):
        build_learner(learner, 1, source="my.toml")


def test_learner_that_needs_another_one_is_reported() -> None:
    with pytest.raises(
        ConfigError,
        match=r"learner\.options: river\.multiclass\.OneVsRestClassifier cannot be built with "
        "them: .*missing 1 required positional argument: 'classifier'",
    ):
        build_learner(Learner(name="river.multiclass.OneVsRestClassifier"), 1, source="my.toml")


def test_key_column_gives_every_key_its_own_loop() -> None:
    assert isinstance(build_loop(Config(), source="my.toml"), InteractiveLoop)
    assert isinstance(
        build_loop(Config(log=settings.Log(key="user")), source="my.toml"), KeyedLoops
    )


def test_expiry_and_horizon_reach_the_loop() -> None:
    config = Config(loop=settings.Loop(expires_after_s=60.0, answer_horizon_s=600.0))
    loop = build_loop(config, source="my.toml")
    assert (loop.rules.expires_after_s, loop.rules.answer_horizon_s) == (60.0, 600.0)


def test_annotator_follows_the_seed_unless_it_has_its_own() -> None:
    assert build_annotator(Config(seed=4)).seed == 4
    annotator = settings.Annotator(
        error_rate=0.1, delay=2.0, decline_rate=0.3, stubborn=True, seed=9
    )
    built: Any = build_annotator(Config(seed=4, annotator=annotator))
    assert type(built) is SimulatedAnnotator
    assert (built.error_rate, built.delay, built.decline_rate) == (0.1, 2.0, 0.3)
    assert (built.stubborn, built.seed, built.classes) == (True, 9, None)
    assert built.name == "simulated"


def test_annotator_gets_its_name_and_classes() -> None:
    annotator = settings.Annotator(name="ann", classes=(1, 2))
    built: Any = build_annotator(Config(annotator=annotator))
    assert (built.name, built.classes) == ("ann", (1, 2))


def test_annotator_with_a_tiring_rate_is_tired() -> None:
    annotator = settings.Annotator(
        error_rate=0.1,
        tiring_rate=0.01,
        half_life_s=60.0,
        response_s=3.0,
        slowing=0.2,
        response_spread=0.1,
    )
    built: Any = build_annotator(Config(annotator=annotator))
    assert type(built) is TiredAnnotator
    assert (built.error_rate, built.tiring_rate, built.half_life_s) == (0.1, 0.01, 60.0)
    assert (built.response_s, built.slowing, built.response_spread) == (3.0, 0.2, 0.1)


def test_several_annotators_are_a_panel_under_the_names_of_their_sections() -> None:
    annotators = {"ann": settings.Annotator(seed=9), "bob": settings.Annotator(tiring_rate=0.1)}
    built: Any = build_annotator(Config(seed=4, annotators=annotators))
    assert type(built) is AnnotatorPanel
    assert built.seed == 4
    assert [(name, one.name, one.seed, type(one)) for name, one in built.annotators.items()] == [
        ("ann", "ann", 9, SimulatedAnnotator),
        ("bob", "bob", 4, TiredAnnotator),
    ]


def test_built_classifier_learns() -> None:
    model = build_model(Config(learner=Learner(name="river.naive_bayes.GaussianNB"), warm_up=0))
    model.learn_one({"a": 1.0}, "x")
    assert isinstance(model.learner, GaussianNB)
    assert model.predict_proba_one({"a": 1.0}) == {"x": 1.0}


def test_numbers_are_asked_for_at_a_rate_unless_a_strategy_or_a_budget_is_named() -> None:
    named = {
        "nothing": Config(target="number"),
        "a strategy": Config(target="number", query=section("query", "always")),
        "a budget": Config(target="number", budget=section("budget", "at_most", n=7)),
        "labels": Config(),
    }
    built: dict[str, Any] = {name: build_model(config).budget for name, config in named.items()}
    assert {name: type(budget).__name__ for name, budget in built.items()} == {
        "nothing": "RateBudget",
        "a strategy": "Unlimited",
        "a budget": "AtMost",
        "labels": "Unlimited",
    }
    assert built["nothing"].rate == 0.1


def test_questions_per_day_and_hour_are_budgets_beside_the_one_that_is_named() -> None:
    per_day, both = Questions(per_day=30), Questions(per_day=30, per_hour=4)
    limit = section("budget", "all_of", budgets=(section("budget", "at_most", n=9),))
    named = {
        "PacedBudget(30, 86400.0)": Config(questions=per_day),
        "PacedBudget(30, 86400.0, at_start=20)": Config(
            questions=Questions(per_day=30, at_start=20)
        ),
        "AllOf(PacedBudget(30, 86400.0, at_start=20), PacedBudget(4, 3600.0))": Config(
            questions=Questions(per_day=30, at_start=20, per_hour=4)
        ),
        "AllOf(PacedBudget(30, 86400.0), PacedBudget(4, 3600.0))": Config(questions=both),
        "AllOf(PacedBudget(30, 86400.0), AllOf(AtMost(9)))": Config(
            questions=per_day, budget=limit
        ),
    }
    for expected, config in named.items():
        for target in ("label", "number"):
            whole = msgspec.structs.replace(config, target=target)
            built: Any = build_model(settings.resolved(whole)).budget
            assert repr(built) == expected
            assert repr(build_model(whole).budget) == expected
    of_key, total = build_counting_budgets(Config(questions=both))
    assert of_key is not None
    assert total is None
    assert of_key.left(0.0) == (4, 4, 3600.0)


def test_availability_is_a_budget_beside_those_that_there_would_be_without_it() -> None:
    available = Questions(availability=True)
    at_most = section("budget", "at_most", n=9)
    named: dict[str, Any] = {
        "AvailabilityBudget(0.1)": {},
        "AllOf(PacedBudget(30, 86400.0), AvailabilityBudget(0.1))": {
            "questions": Questions(per_day=30, availability=True)
        },
        "AllOf(AvailabilityBudget(0.1), AtMost(9))": {"budget": at_most},
        # Numbers are asked for at a rate.
        "AllOf(AvailabilityBudget(0.1), RateBudget(0.1, window=50, horizon=8, seed=1))": {
            "target": "number"
        },
    }
    for expected, options in named.items():
        config = Config(**{"questions": available} | options)
        assert repr(build_model(config).budget) == expected
        assert repr(build_model(settings.resolved(config)).budget) == expected
    off = Questions(availability=False)
    assert repr(build_model(Config(questions=off)).budget) == "Unlimited()"


def test_an_annotator_with_hours_is_away_at_all_others() -> None:
    annotator = build_annotator(Config(annotator=Annotator(hours=("7-9", "22-6"))))
    assert isinstance(annotator, AwayAnnotator)
    assert (annotator.name, annotator.hours) == ("simulated", ((7, 9), (22, 6)))


def test_a_process_of_numbers_learns_its_hyperparameters_unless_told_otherwise() -> None:
    given = [
        Learner(),
        Learner(learn_hyperparameters=False, noise_variance=0.3),
    ]
    made: list[Any] = [build_learner(one, 1, target="number", source="here") for one in given]
    assert [(m.noise_variance, m.learn_hyperparameters) for m in made] == [
        (0.1, True),
        (0.3, False),
    ]
    of_labels: Any = build_learner(Learner(), 1, source="here")
    assert not of_labels.learn_hyperparameters


def test_true_labels_of_windows_are_made_without_importing_features_of_ones_own() -> None:
    section = settings.Windows(length_s=10.0, min_purity=0.8, features=("nowhere:shape", "basic"))
    windows = build_labelled_windows(Config(windows=section))
    assert windows is not None
    rows = [
        Event(event_id=str(i), key="ann", x={"a": 1.0}, occurred_at=float(i), truth=truth)
        for i, truth in enumerate(["den"] * 9 + ["hall"] + ["den"] * 6 + ["hall"] * 5)
    ]
    found = [event for row in rows for event in windows.take(row, now=0.0)]
    assert [(event.event_id, event.truth) for event in found] == [
        ("ann@0", "den"),
        ("ann@10", None),
    ]
    assert build_labelled_windows(Config()) is None
