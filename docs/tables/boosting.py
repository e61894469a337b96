"""Tables of boosted forests: the paper's experiment, and what to pick."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from table import Table, Where, crossed, each, spread

_SETS = each("set", "Pendigits", "Letter", "USPS", "DNA")
_BOOSTED = ("GB", "CB")
_ALL = (*_BOOSTED, "GB, normalised", "GB, larger trees", "forest, not boosted")
_SETTINGS = {f"`{name}`": {"setting": name} for name in ("paper", "default")}
_ERROR = "{error:.1p} ± {error se:.1p}"
_MEASURES: Mapping[str, Where] = {
    "error": {"$measure": "error"},
    "overconfidence": {"$measure": "over-confidence"},
    "underconfidence": {"$measure": "under-confidence"},
    "area": {"$measure": "AUC right v. wrong"},
}
_MEASURED = "{$measure:.3f} ± {$measure se:.3f}"


def _rows(*methods: str, ways: Sequence[str] = ("passive", "active")) -> dict[str, Where]:
    """Return a row for each method and way."""
    return {f"{way} {method}": {"way": way, "method": method} for method in methods for way in ways}


def _last_round(setting: str, measures: Sequence[str], template: str = _MEASURED) -> Table:
    """Return a table of boosting after the last round."""
    wanted = {name: {**_MEASURES[name], "setting": setting} for name in measures}
    return Table(
        measured="boosting",
        head="|",
        rows=crossed(wanted, _rows(*_BOOSTED)),
        columns=spread(template, _SETS),
    )


def _of_all(template: str, **ways: Sequence[str]) -> Table:
    """Return a table of all methods in both settings."""
    return Table(
        measured="boosting",
        head="setting |",
        rows=crossed(_SETTINGS, _rows(*_ALL, **ways)),
        columns=spread(template, _SETS),
    )


def _active(setting: str, method: str) -> Where:
    return {"setting": setting, "way": "active", "method": method}


_LEARNERS: Mapping[str, Where] = each(
    "learner",
    **{
        "`ConfidenceBoostingClassifier`": "CB",
        "with forests of `min_weight=100`": "CB, min_weight=100",
        "`OnlineGradientBoostingClassifier`": "GB",
        "with `normalise_weights=True`": "GB, normalised",
        "`OnlineForestClassifier(100)`": "forest of 100 trees",
        "`GPClassifier(max_points=500)`": "GP, 500 points",
    },
)
_LOGS = each(
    "log",
    **{
        "WiFi rooms": "wifi_rooms",
        "WISDM": "wisdm",
        "keystrokes": "keystroke",
        "occupancy": "occupancy",
        "places": "places_1",
        "Pendigits": "pendigits",
        "Letter": "letter",
    },
)

TABLES = {
    "boosting-published": _last_round(
        "paper", ("error", "overconfidence"), f"{_MEASURED} ({{paper's $measure:.3f}})"
    ),
    "boosting-more": _last_round("paper", ("underconfidence", "area")),
    "boosting-default": _last_round("default", tuple(_MEASURES)),
    "boosting-labels": _of_all("{labels:.0f} ± {labels se:.0f}", ways=["active"]),
    "boosting-controls": _of_all(_ERROR),
    "boosting-nodes": _of_all("{nodes per tree:.0f}", ways=["active"]),
    "boosting-baselines": Table(
        measured="boosting",
        head="| which labels",
        rows=crossed(
            each("learner", "CB", "one-vs-all GP", "extra trees, refit"),
            each("which labels", "the labels CB asked for", "as many at random"),
        ),
        columns=spread(_ERROR, _SETS),
    ),
    "boosting-gain": Table(
        measured="boosting",
        rows={
            "`paper`: gradient boosting": _active("paper", "GB"),
            "with `min_weight=40`, so that trees are about as large": _active(
                "paper", "GB, larger trees"
            ),
            "`paper`, with `normalise_weights`": _active("paper", "GB, normalised"),
            "`paper`: Confidence Boosting": _active("paper", "CB"),
            "`default`: gradient boosting": _active("default", "GB"),
            "`default`, with `normalise_weights`": _active("default", "GB, normalised"),
            "`default`: Confidence Boosting": _active("default", "CB"),
        },
        columns=spread("{error:.1p}", _SETS),
    ),
    "boosting-weak": Table(
        measured="boosting",
        head="ten of, Confidence Boosting",
        rows=each(
            "weak learner",
            **{
                "`OnlineForestClassifier` (None)": "OnlineForestClassifier (default)",
                "River's `AMFClassifier(n_estimators=10)`": "river AMFClassifier",
                "River's `HoeffdingTreeClassifier()`": "river HoeffdingTreeClassifier",
            },
        ),
        columns=spread(
            "{error:.1p} %, {ms per label learned:~2}, {ms per prediction:~2}",
            each("set", **{"digits of scikit-learn": "digits"}) | each("set", "DNA"),
        ),
    ),
    "boosting-logs": Table(
        measured="boosting",
        head="wrong labels |",
        rows=crossed({"none": {"wrong labels": 0.0}, "20 %": {"wrong labels": 0.2}}, _LEARNERS),
        columns=spread(_ERROR, _LOGS),
    ),
}
