"""Rules, learners and kernels that are not of streamgp, named as `module:name`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from river.base import Classifier

from streamgp.apps.replay.checkpoint import config_of
from streamgp.base import Decision
from streamgp.common.fingerprint import fingerprint
from streamgp.config.build import build_model, build_total_budget
from streamgp.config.templates import toml
from streamgp.config.validation import ConfigError
from streamgp.kernels import Matern52
from streamgp.learners.forest import OnlineForestClassifier
from streamgp.query import AtMost
from tests.helpers.configurations import parse

MODULE = '''
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from river import preprocessing
from river.naive_bayes import GaussianNB

from streamgp.base import Decision
from streamgp.kernels import Matern52
from streamgp.query.retrospective import LeaveOneOutReview
from streamgp.query.registry import Share


@dataclass(frozen=True)
class Eager:
    """Asks by a coin."""

    share: Share
    mode: Literal["loud", "quiet"] = "loud"
    seed: int = 0

    def decide(self, belief, draw):
        return Decision.of(self.share, draw, "Eager")


class Trusting:
    def decide(self, belief, given, *, probability_wrong, draw):
        return Decision.of(probability_wrong, 0.9, "Trusting")


class Twice:
    def __init__(self, n):
        if n > 9:
            raise ValueError("n must be small")
        self.n = n
        self._left = 2 * n

    def allows(self, decision, now):
        return self._left > 0

    def note(self, decision, asked, now):
        self._left -= asked

    def refund(self, now):
        pass

    def state(self):
        return {"left": self._left}

    def load_state(self, state):
        self._left = state["left"]


class Weekly:
    """Has annotations that mean nothing when it runs, and a list."""

    def __init__(self, days: "Days" = ["mon"], makes=1):
        self.days, self.makes = days, makes

    def decide(self, belief, draw):
        return Decision.of(0.5, draw, "Weekly")


class Mute:
    def decide(self, belief):
        return None


class Looking:
    """Looks as streamgp does, every label."""

    def reviewer(self):
        return LeaveOneOutReview(every=1).reviewer()


def scaled_bayes(var_smoothing=1e-9):
    return preprocessing.StandardScaler() | GaussianNB()


def smooth():
    return Matern52(3.0)


number = 3
half_made = partial(Eager, mode="loud")
'''


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own_rules.py").write_text(MODULE)
    (tmp_path / "broken_rules.py").write_text("import no_such_module_at_all\n")
    (tmp_path / "worded_rules.py").write_text("this is no program\n")
    (tmp_path / "failing_rules.py").write_text("1 / 0\n")
    (tmp_path / "ending_rules.py").write_text("import sys\nsys.exit(3)\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "own_rules", raising=False)


pytestmark = pytest.mark.usefixtures("own")

EAGER = '[query]\nrule = "own_rules:Eager"\nshare = 0.25\n'


def built(text: str) -> Any:
    return build_model(parse(text, source="my.toml"), source="my.toml")


def test_a_query_rule_is_built_with_its_settings_and_the_seed() -> None:
    query = built(f'seed = 7\n{EAGER}mode = "quiet"').query
    assert (query.share, query.mode, query.seed) == (0.25, "quiet", 7)
    assert query.decide({}, 0.2) == Decision.of(0.25, 0.2, "Eager")


def test_settings_without_types_are_taken_as_they_are() -> None:
    own = '[query]\nrule = "own_rules:Weekly"\n'
    assert built(own).query.days == ["mon"]
    query = built(f'{own}days = ["tue"]\nmakes = 2').query
    assert (query.days, query.makes) == (["tue"], 2)


def test_its_fingerprint_is_that_of_any_object() -> None:
    from own_rules import Eager  # type: ignore[import-not-found]

    model = built(f"seed = 7\n{EAGER}")
    assert fingerprint(model.query) == fingerprint(Eager(0.25, seed=7))
    assert model.fingerprint() == built(f"seed = 7\n{EAGER}").fingerprint()
    other = built(f"seed = 7\n{EAGER.replace('0.25', '0.5')}")
    assert model.fingerprint() != other.fingerprint()


def test_each_kind_of_rule_may_be_custom() -> None:
    model = built(
        '[challenge]\nrule = "own_rules:Trusting"\n'
        '[budget]\nrule = "own_rules:Twice"\nn = 3\n'
        '[review]\nrule = "own_rules:Looking"\n'
    )
    assert [type(rule).__name__ for rule in (model.challenge, model.budget, model.review)] == [
        "Trusting",
        "Twice",
        "Looking",
    ]
    for hour in range(3):
        model.learn_one({"hour": hour}, "am")
    assert model.review_due
    assert model.clone().load_state(model.state(), model.examples()) is None


def test_a_custom_budget_is_accepted_wherever_a_budget_is() -> None:
    own = 'rule = "own_rules:Twice"\nn = 3\n'
    config = parse(
        f'[total_budget]\n{own}[budget]\nrule = "all_of"\n'
        f'[[budget.budgets]]\nrule = "at_most"\nn = 1\n[[budget.budgets]]\n{own}'
        f'[review]\nrule = "leave_one_out"\n[review.budget]\n{own}',
        source="my.toml",
    )
    model: Any = build_model(config)
    first, second = model.budget.budgets
    assert (type(first), second.n, model.review.budget.n) == (AtMost, 3, 3)
    total: Any = build_total_budget(config, source="my.toml")
    assert total.n == 3


def test_numbers_may_be_asked_about_by_a_custom_rule() -> None:
    assert built(f'target = "number"\n{EAGER}').query.share == 0.25


def test_a_learner_is_a_class_or_what_returns_one() -> None:
    by_class = built('[learner]\nname = "streamgp.learners.forest:OnlineForestClassifier"\n')
    assert isinstance(by_class.model, OnlineForestClassifier)
    assert by_class.model.seed == 1
    assert list(built('[learner]\nname = "own_rules:scaled_bayes"\n').model.steps) == [
        "StandardScaler",
        "GaussianNB",
    ]


def test_a_kernel_is_named_among_the_options() -> None:
    assert built('[learner.options]\nkernel = "own_rules:smooth"').model.kernel == Matern52(3.0)
    ensemble = '[learner]\nname = "ensemble"\n[learner.options]\nkernels = ["own_rules:smooth"]'
    assert built(ensemble).model.kernels == [Matern52(3.0)]
    paper = built('preset = "paper"\n[learner.options]\nkernel = "own_rules:smooth"')
    assert paper.model.kernel == Matern52(3.0)


def test_a_configuration_is_the_same_after_it_was_written() -> None:
    config = parse(EAGER, source="my.toml")
    assert parse(toml(config), source="again") == config
    assert config_of({"configuration": msgspec.to_builtins(config)}) == config
    assert msgspec.to_builtins(config)["query"] == {"rule": "own_rules:Eager", "share": 0.25}


def test_a_file_is_read_without_running_the_module() -> None:
    parse(EAGER, source="my.toml")
    assert "own_rules" not in sys.modules


WRONG = {
    '[query]\nrule = "no_rules:Eager"': (
        "query.rule = \"no_rules:Eager\" is not allowed: No module named 'no_rules'; install it, "
        "or name the directory that it is in with PYTHONPATH"
    ),
    '[query]\nrule = "broken_rules:Eager"': (
        'query.rule = "broken_rules:Eager": broken_rules cannot be imported: No module named '
        "'no_such_module_at_all'"
    ),
    '[query]\nrule = "worded_rules:Eager"': (
        'query.rule = "worded_rules:Eager": worded_rules cannot be imported: invalid syntax'
    ),
    '[query]\nrule = "failing_rules:Eager"': (
        'query.rule = "failing_rules:Eager": failing_rules cannot be imported, it raises '
        "ZeroDivisionError: division by zero"
    ),
    '[query]\nrule = "ending_rules:Eager"': (
        'query.rule = "ending_rules:Eager": ending_rules cannot be imported, it raises '
        "SystemExit: 3"
    ),
    '[query]\nrule = "own_rules:Eagre"': (
        'query.rule = "own_rules:Eagre" is not allowed: Eagre is not known, did you mean "Eager"? '
        "(allowed: Eager, Looking, Mute, Trusting, Twice, Weekly, scaled_bayes, smooth) in own"
    ),
    '[query]\nrule = "own_rules:number"': (
        'query.rule = "own_rules:number" is not allowed: number of own_rules is a int, expected a '
        "class, or a function that returns an object"
    ),
    '[query]\nrule = "own_rules:half_made"\nleast = 1': (
        "query.least is not known (allowed: rule, share, mode)"
    ),
    '[query]\nrule = "own_rules:Mute"': ('query.rule = "own_rules:Mute" gives <own_rules.Mute'),
    '[query]\nrule = "own_rules:Eager"': "query.share is missing, expected a number from 0 to 1",
    EAGER + "mood = 1": (
        'query.mood is not known, did you mean "mode"? (allowed: rule, share, mode)'
    ),
    EAGER + 'mode = "soft"': (
        'query.mode = "soft" is not allowed, expected one of "loud", "quiet"'
    ),
    EAGER.replace("0.25", "2"): "query.share = 2 is not allowed, expected a number from 0 to 1",
    '[budget]\nrule = "own_rules:Twice"\nn = 10': (
        'budget.rule = "own_rules:Twice" cannot be built with its settings: n must be small'
    ),
    '[query]\nrule = "own rules:Eager"': (
        'query.rule = "own rules:Eager" is not allowed, expected a module and a name in it, as in '
        '"my_rules:MyRule"'
    ),
    EAGER + '"my mode" = 1': "query.my mode is not allowed, expected names of arguments",
    '[reservoir]\nrule = "own_rules:Eager"': (
        'reservoir.rule = "own_rules:Eager" is not allowed, expected one of "never", "latest"'
    ),
    '[learner]\nname = "own_rules:Eager"\n[learner.options]\nshare = 0.1': (
        'learner.name = "own_rules:Eager" is not allowed: model must be a River classifier'
    ),
    '[learner.options]\nkernel = "own_rules:Trusting"': (
        'learner.options.kernel = "own_rules:Trusting" gives <own_rules.Trusting'
    ),
    '[learner]\nlength_scale = 2\n[learner.options]\nkernel = "own_rules:smooth"': (
        "learner.length_scale = 2.0 and learner.options.kernel, which has length scales of its own"
    ),
}


@pytest.mark.parametrize("text", WRONG, ids=lambda text: text[:50])
def test_what_cannot_be_used_is_reported(text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        built(text)
    assert str(caught.value).startswith(f"my.toml: {WRONG[text]}")


def test_a_rule_without_the_methods_is_told_which_ones_are_expected() -> None:
    with pytest.raises(ConfigError, match=r"lacks decide\(belief, draw\)$"):
        built('[query]\nrule = "own_rules:Mute"')
    with pytest.raises(ConfigError, match=r"decide\(belief, given, \*, probability_wrong, draw\)$"):
        built('[challenge]\nrule = "own_rules:Eager"\nshare = 0.1')
    with pytest.raises(ConfigError, match=r"lacks allows\(decision, now\), note\(decision, asked,"):
        built('[budget]\nrule = "own_rules:Trusting"')
    with pytest.raises(ConfigError, match=r"which is not a kernel: it lacks .*embed\(x\)"):
        built('[learner.options]\nkernel = "own_rules:Trusting"')


def test_river_keeps_its_paths() -> None:
    learner = built('[learner]\nname = "river.naive_bayes.GaussianNB"').model
    assert isinstance(learner, Classifier)


def test_a_path_without_a_colon_is_refused_with_how_to_name_a_custom_rule() -> None:
    with pytest.raises(ConfigError, match=r'expected one of .*, or one of your own, as in "my_'):
        parse('[query]\nrule = "own_rules.Eager"', source="my.toml")
