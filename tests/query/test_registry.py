"""What is registered about rules, wherever they are defined."""

import inspect
import subprocess
import sys
from typing import get_args

import pytest

from streamgp.query.registry import LEARNERS, Kind, classes_only_for, rules

KINDS = get_args(Kind)


def printed(program):
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    return done.stdout.decode().strip()


def test_rules_load_without_numerics_and_without_learners():
    program = (
        "import sys\nfrom streamgp.query.registry import rules\nrules('query')\n"
        "print([name for name in sys.modules if name.startswith('streamgp.learners')"
        " or name in ('numpy', 'scipy', 'river')])"
    )
    assert printed(program) == "[]"


def test_the_order_of_rules_is_not_that_of_imports():
    program = (
        "import streamgp.query.budgets, streamgp.query.equal_error\n"
        "from streamgp.query.registry import rules\nprint(list(rules('query')))"
    )
    assert printed(program) == str(list(rules("query")))


@pytest.mark.parametrize("kind", KINDS)
def test_each_setting_of_a_rule_is_annotated(kind):
    for name, rule in rules(kind).items():
        if rule.cls is not type(None):
            for parameter in inspect.signature(rule.cls).parameters.values():
                assert parameter.annotation is not parameter.empty, (name, parameter)


@pytest.mark.parametrize("kind", KINDS)
def test_each_rule_is_of_some_use_and_said_to_be(kind):
    for rule in rules(kind).values():
        assert rule.targets
        assert rule.example or rule.cls is type(None)


def test_rules_for_one_kind_of_target_are_for_no_other():
    only = classes_only_for("query", "label")
    assert only
    assert not set(only) & {
        rule.cls for rule in rules("query").values() if "number" in rule.targets
    }


def test_learners_are_named_by_where_they_are():
    assert all(path.count(":") == 1 for one in LEARNERS.values() for path in one.classes.values())
