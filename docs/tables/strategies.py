"""Tables of query rules, compared at equal numbers of labels."""

from __future__ import annotations

from table import Table, Where, crossed, each, spread

_DEFAULT = "SkepticalAsk"
# Shown after the name of a rule on the page: the parameter that sets how many labels it asks for.
_KNOBS = {
    "`SkepticalAsk(c)`": _DEFAULT,
    "`PaperAsk` + `AtMost(n)`": "PaperAsk + AtMost",
    "`RandomAsk(rate)`": "RandomAsk",
    "`AlwaysAsk` + `AtMost(n)`": "AlwaysAsk + AtMost",
    "`Entropy(threshold)`": "Entropy",
    "`LeastConfidence(threshold)`": "LeastConfidence",
    "`BestVersusSecond(threshold)`": "BestVersusSecond",
    "`Entropy(0.0)` + `RateBudget`": "Entropy + RateBudget",
    "`LeastConfidence(0.0)` + `RateBudget`": "LeastConfidence + RateBudget",
    "`BestVersusSecond(0.0)` + `RateBudget`": "BestVersusSecond + RateBudget",
    "River `EntropySampler`": "EntropySampler",
    **{
        f"scikit-activeml `{name}`": name
        for name in (
            "StreamRandomSampling",
            "PeriodicSampling",
            "FixedUncertainty",
            "VariableUncertainty",
            "RandomVariableUncertainty",
            "Split",
        )
    },
}
_RULES: dict[str, Where] = each("rule", **_KNOBS)
_LEARNERS = each(
    "learner", **{"River's `ARFClassifier`": "ARFClassifier", "`GPClassifier`": "GPClassifier"}
)
_AT_AS_MANY_LABELS = each(
    "rule",
    **{
        "`SkepticalAsk`": _DEFAULT,
        "`BestVersusSecond` + `RateBudget`": "BestVersusSecond + RateBudget",
        "`RandomAsk`": "RandomAsk",
    },
)
_LOGS = ("wifi_rooms", "occupancy", "wisdm", "places_1", "elec2", "pendigits")
_RATES = (0.05, 0.1, 0.2)

TABLES = {
    "strategies": Table(
        measured="strategies",
        head="rule",
        rows=_RULES,
        columns={
            **{
                f"{title}{rate:.0%}".replace("%", " %"): f"{{{what} {rate:.0%}:.3f}}"
                for what, title in (("accuracy", "accuracy "), ("F1", "F1 "))
                for rate in _RATES
            },
            "mean accuracy": "{accuracy:.3f}",
            "mean F1": "{F1:.3f}",
            "above default": "{above default:+.3f} ± {se:.3f}",
            "µs": "{us per decision:.1f}",
        },
    ),
    "strategies-logs": Table(
        measured="strategies",
        head="rule",
        rows=_RULES,
        columns={log: f"{{{log}:.3f}}" for log in _LOGS},
    ),
    "strategies-best": Table(
        measured="strategies",
        head="log | share of the events",
        rows={"{log} | {share:.2f}": {}},
        columns={
            "best": "{best}",
            "its accuracy": "{its accuracy:.3f}",
            "`SkepticalAsk`": "{of SkepticalAsk:.3f}",
        },
    ),
    "strategies-alone": Table(
        measured="strategies",
        head="rule",
        rows=_RULES,
        columns={
            "with challenges": "{with challenges:.3f} ({rank with challenges}.)",
            "without": "{without:.3f} ({rank without}.)",
        },
    ),
    "equal-error": Table(
        measured="equal_error",
        head="learner | log",
        rows=crossed(
            _LEARNERS,
            each("log", "wifi_rooms", "elec2", "wisdm", "occupancy", "pendigits", "mean"),
        ),
        columns=spread(
            "{accuracy:.3f} ({labels:.0f})",
            {"**`EqualErrorAsk`**": {"rule": "EqualErrorAsk"}, **_AT_AS_MANY_LABELS},
        ),
    ),
    "equal-error-above": Table(
        measured="equal_error",
        head="learner",
        rows=_LEARNERS,
        columns=spread("{above:+.3f} ± {se:.3f}", _AT_AS_MANY_LABELS),
    ),
}
