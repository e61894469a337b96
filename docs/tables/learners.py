"""Tables of the accuracy of learners."""

from __future__ import annotations

from typing import Any

from table import Table, Where, crossed, each, spread

_BOUNDED = {
    "exact": "{exact_%:.1f}",
    "m = 100": "{points_lost_m=100:.2f}",
    "m = 200": "{points_lost_m=200:.2f}",
    "m = 500": "{points_lost_m=500:.2f}",
}
_LOGS_AS_RECORDED = {
    "WiFi rooms": "wifi_rooms",
    "occupancy": "occupancy",
    "Elec2": "elec2",
    "WISDM, user after user": "wisdm_by_user",
    "places of user 1": "places_1",
    "places of user 24": "places_24",
    "activities of user 10": "activities_10",
    "activities of user 5": "activities_5",
}
_LOGS_SHUFFLED = {
    "WISDM": "wisdm",
    "keystroke": "keystroke",
    "pendigits": "pendigits",
    "letter": "letter",
    "WiFi rooms": "wifi_rooms",
    "occupancy": "occupancy",
}
_TEMPORAL = {
    "before": "{before:.3f}",
    "filter": "{filter:.3f}",
    "clip": "{clip:.3f}",
    "clip and renewal": "{rescale:.3f}",
    "all, as in `isgp()`": "{all:.3f}",
    "gain": "{gain:+.3f} ± {gain_se:.3f}",
    "in macro F1": "{F1_gain:+.3f} ± {F1_gain_se:.3f}",
}
_DOUBLING, _ONCE = "doubling", "at the end"
_SCALED = {
    **{f"a = {a:g}, N = 200": (a, 200, _DOUBLING) for a in (0.5, 0.6, 0.75)},
    "**a = 0.9, N = 200**": (0.9, 200, _DOUBLING),
    "a = 1, N = 200": (1.0, 200, _DOUBLING),
    **{f"a = 0.9, N = {n}": (0.9, n, _DOUBLING) for n in (50, 100, 400)},
    **{f"a = 0.9, changed only at N = {n}": (0.9, n, _ONCE) for n in (50, 200)},
}


_ORDERS = {"": "recorded", "shuffled ": "random"}
_SETS = {
    "`alpha` = .1": {"alpha": 0.1, "labelled": "all"},
    "`alpha` = .2": {"alpha": 0.2, "labelled": "all"},
    ".1, asked labels only": {"alpha": 0.1, "labelled": "asked"},
}


def _labelled(**where: Any) -> dict[str, Where]:
    return {"5 %": {"labels": 0.05, **where}, "10 %": {"labels": 0.1, **where}}


_PEERS = {
    "`GPClassifier()`": {"classifier": "GPClassifier()"},
    "`max_points=200`": {"classifier": "GPClassifier(max_points=200)"},
    "`learn_hyperparameters=True`": {"classifier": "exact, learning hyperparameters"},
    "both": {"classifier": "200 points, learning hyperparameters"},
    **each(
        "classifier",
        "scikit-learn's GP, refitted",
        "River AMF",
        "River KNN",
        "River ARF",
        "River Hoeffding tree",
        "River Gaussian naive Bayes",
    ),
    "no change: the last label": {"classifier": "no change"},
}
_PEERS_LOGS = each(
    "log",
    **{
        "ImageSegments (2310)": "ImageSegments",
        "Pendigits": "pendigits, recorded",
        "WISDM": "wisdm, recorded",
        "WiFi rooms (2000)": "wifi_rooms, random",
        "Elec2": "elec2, recorded",
        "Phishing (1250)": "Phishing",
        "mean": "mean",
    },
)
_PUBLIC = {"`isgp(temporal=None)`": {"learner": "isgp(temporal=None)"}} | each(
    "learner",
    "River ARF",
    "River ARF, asking",
    "River logistic regression",
    "River logistic regression, asking",
    "River nearest neighbours",
    "River Hoeffding adaptive tree",
    "River Gaussian naive Bayes",
    "random forest, retrained",
    "random forest, retrained, asking",
    "logistic regression, retrained",
    "logistic regression, retrained, asking",
    "the last answer",
    "the most frequent answer",
)

TABLES = {
    "public": Table(
        measured="public",
        rows=_PUBLIC,
        columns={
            title: ({"logs": "all"}, template)
            for title, template in {
                "all answers right": "{behind_0%:.3f} ± {behind_0%_se:.3f}",
                "ahead on": "{ahead_0%}",
                "20 % wrong": "{behind_20%:.3f} ± {behind_20%_se:.3f}",
                "ahead on, 20 %": "{ahead_20%}",
                "on both": "{ahead_both}",
            }.items()
        },
    ),
    "public-kinds": Table(
        measured="public",
        rows=_PUBLIC,
        columns={
            f"{logs}, {how}": ({"logs": logs}, f"{{behind_{rate}:.2f}} ± {{behind_{rate}_se:.2f}}")
            for logs in ("labels last", "others")
            for how, rate in {"all right": "0%", "20 % wrong": "20%"}.items()
        },
    ),
    "hyperparameters": Table(
        measured="hyperparameters",
        rows={
            "letters": {"log": "letter, recorded"},
            "Elec2": {"log": "elec2, recorded"},
            "pendigits": {"log": "pendigits, recorded"},
            "USPS": {"log": "usps, recorded"},
            "DNA": {"log": "dna, recorded"},
            "WISDM": {"log": "wisdm, recorded"},
            "occupancy": {"log": "occupancy, recorded"},
            "WiFi rooms, class after class": {"log": "wifi_rooms, recorded"},
        },
        columns={
            "events": "{events}",
            "given": "{given_%:.1f}",
            "learned": "{learned_%:.1f}",
            "gain": "{gain_points:+.2f}",
        },
    ),
    "hyperparameters-waits": Table(
        measured="hyperparameters",
        rows={"`{learner}`": {}},
        columns={f"{n}": f"{{{n}_ms:.1f}}" for n in (32, 64, 128, 256, 512, 1024)},
    ),
    "regression": Table(
        measured="regression",
        rows=each(
            "problem",
            "Branin",
            "Currin",
            "robot pushing",
            "SARCOS",
            "SARCOS, in order",
            **{
                "Pumadyn-32nm": "pumadyn32nm",
                "diabetes (scikit-learn)": "diabetes",
                "Friedman 1 (scikit-learn)": "Friedman 1",
                "heavy tails": "heavy tails",
            },
        ),
        columns={
            "examples": "{examples}",
            "noise .5": "{noise .5:.3f}",
            "noise .1": "{noise .1:.3f}",
            "learned": "{learned:.3f}",
            "stream: noise .1": "{noise .1, stream:.3f}",
            "stream: learned": "{learned, stream:.3f}",
            "in intervals": "{covered:.3f}",
            "stream: in intervals": "{covered, stream:.3f}",
        },
    ),
    "regression-tails": Table(
        measured="regression",
        head="length of w | run",
        rows={"{w} | {seed}": {}},
        columns={
            "NMSE": "{NMSE:.3f}",
            "in intervals": "{covered:.3f}",
            "stream: in intervals": "{covered, stream:.3f}",
            "squared error / variance": "{squared:.2f}",
            "ranges beyond": "{reach:.2f}",
            "experts left": "{experts}",
        },
    ),
    "drift": Table(
        measured="drift",
        rows={
            "no drift": {"drift": "none", "concepts": "mean"},
            "abrupt, in the middle": {"drift": "abrupt", "concepts": "mean"},
            "gradual, over half of the time": {"drift": "gradual", "concepts": "mean"},
            "there and back again, three changes": {"drift": "recurring", "concepts": "mean"},
            "Elec2, first 10 000": {"concepts": "Elec2, 10000 events"},
            "Elec2, all 45 312": {"concepts": "Elec2, 45312 events"},
        },
        columns={
            "exact": "{exact:.1f}",
            "sparse": "{sparse:.1f}",
            "sparse + ADWIN": "{sparse_+_ADWIN:.1f}",
            "window": "{window:.1f}",
            "drift test": "{drift_test:.1f}",
            "no change": "{no_change:.1f}",
        },
    ),
    "drift-test": Table(
        measured="drift_test",
        head="streams",
        rows={
            "abrupt change, in the middle": {"streams": "abrupt", "stream": "mean"},
            "gradual, over half of the time": {"streams": "gradual", "stream": "mean"},
            "there and back again, three changes": {"streams": "recurring", "stream": "mean"},
            "the same streams without change": {"streams": "none", "stream": "mean"},
            "a few classes change, in the middle": {"streams": "few", "stream": "mean"},
            "eight logs as recorded": {"streams": "recorded", "stream": "mean"},
            "six logs, shuffled": {"streams": "random", "stream": "mean"},
        },
        columns={
            "without": "{without:.3f}",
            "with the test": "{drift_test:.3f}",
            "gain": "{gain:+.3f} ± {gain_se:.3f}",
            "labels": "{labels_asked_for:.0f}",
            "drifts found": "{drifts_found:.1f}",
        },
    ),
    "drift-asked": Table(
        measured="drift",
        head="query rule, change",
        rows=crossed(
            each(
                "asked_by",
                **{
                    f"`{rule}`": rule
                    for rule in (
                        "SkepticalAsk()",
                        "SkepticalAsk(at_least=.05)",
                        "SkepticalAsk(at_least=.1)",
                        "RandomAsk(.1)",
                    )
                },
            ),
            each("drift", "none", "abrupt", **{"there and back again": "recurring"}),
            by=", ",
        ),
        columns={
            "sparse": "{sparse:.1f}",
            "window": "{window:.1f}",
            "sparse + ADWIN": "{sparse_+_ADWIN:.1f}",
            "asked": "{questions:.0f}",
            "found": "{drifts_found:.1f}",
            "drift test": "{drift_test:.1f}",
            "asked by it": "{drift_test_questions:.0f}",
            "found by it": "{drift_test_found:.1f}",
        },
    ),
    "bounded": Table(
        measured="bounded",
        head="stationary streams",
        rows={
            "digits, three shuffled passes": {"stream": "digits"},
            "ImageSegments, three shuffled passes": {"stream": "ImageSegments"},
            "Shuttle": {"stream": "Shuttle"},
            "Bananas": {"stream": "Bananas"},
            "RandomRBF, 10 classes, 60 centroids": {"stream": "RandomRBF"},
            "Waveform": {"stream": "Waveform"},
            "LED, 10 % noise": {"stream": "LED"},
            "**mean**": {"stream": "mean"},
        },
        columns=_BOUNDED,
    ),
    "bounded-logs": Table(
        measured="bounded",
        head="logs in their own order, or class after class",
        rows={
            "WiFi rooms, recorded": {"log": "wifi_rooms, recorded"},
            "occupancy, recorded": {"log": "occupancy, recorded"},
            "Elec2, recorded, first 5400": {"log": "elec2, recorded"},
            "places of ExtraSensory user 1, recorded": {"log": "places_1, recorded"},
            "places of ExtraSensory user 24, recorded": {"log": "places_24, recorded"},
            "pendigits, class after class": {"log": "pendigits, sequential"},
            "letters, class after class": {"log": "letter, sequential"},
            "WISDM, class after class": {"log": "wisdm, sequential"},
            "keystrokes, class after class": {"log": "keystroke, sequential"},
            "**mean**": {"log": "mean"},
        },
        columns=_BOUNDED,
    ),
    "peers": Table(measured="peers", rows=_PEERS, columns=spread("{accuracy_%:.3s}", _PEERS_LOGS)),
    "peers-times": Table(
        measured="peers", rows=_PEERS, columns=spread("{us_at_the_end:.0f}", _PEERS_LOGS)
    ),
    "temporal": Table(
        measured="temporal",
        head="log | labels",
        rows=crossed(each("log", **_LOGS_AS_RECORDED), _labelled(order="recorded")),
        columns=_TEMPORAL,
    ),
    "temporal-shuffled": Table(
        measured="temporal",
        head="log | labels",
        rows=crossed(each("log", **_LOGS_SHUFFLED), _labelled(order="shuffled")),
        columns=_TEMPORAL,
    ),
    "temporal-late": Table(
        measured="temporal",
        head="log | labels",
        rows=crossed(each("log", **_LOGS_AS_RECORDED), _labelled()),
        columns={
            f"{late} late: {title}": ({"late": late}, template)
            for late in (10, 30)
            for title, template in {
                "before": "{before:.3f}",
                "filter": "{filter:.3f}",
                "all": "{all:.3f}",
                "gain": "{gain:+.3f} ± {gain_se:.3f}",
            }.items()
        },
    ),
    "drift-scaling": Table(
        measured="drift",
        head="`rescale`",
        rows=each("scaling", **{"False": "frozen", "True": "renewed", '"recent"': "recent"}),
        columns={
            "no change": "{none:.1f}",
            "moving sensors": "{sensors:.1f}",
            "abrupt change": "{abrupt:.1f}",
            "there and back again": "{recurring:.1f}",
        },
    ),
    "scaling": Table(
        measured="scaling",
        rows={
            title: {"logs": "compared", "a": a, "N": n, "refit": refit}
            for title, (a, n, refit) in _SCALED.items()
        },
        columns={
            "accuracy": "{accuracy:.3f}",
            "questions": "{n_questions:.0f}",
            "labels": "{n_asked:.0f}",
            "wrong kept": "{wrong_kept:.1%}",
            "advantage": "{advantage:+.3f} ± {advantage_se:.3f}",
            "random": "{advantage_random:+.3f}",
            "class after class": "{advantage_sequential:+.3f}",
            "recorded": "{advantage_recorded:+.3f}",
        },
    ),
    "prediction-sets": Table(
        measured="prediction_sets",
        head="log",
        rows=each("log", "wifi_rooms", "wisdm", "pendigits", "places_1", "occupancy", "elec2"),
        columns={
            "accuracy": (_SETS["`alpha` = .1"], "{accuracy:.3f}"),
            **{
                f"{sets}: {title}": (where, template)
                for sets, where in _SETS.items()
                for title, template in {"held": "{held:.3f}", "labels": "{in_set:.2f}"}.items()
            },
        },
    ),
    "likelihoods": Table(
        measured="ensembles",
        rows=each(
            "learner",
            "regression",
            "logistic",
            "regression, 200 features",
            **{"`GPClassifier(max_points=300)`": "GPClassifier(max_points=300)"},
        ),
        columns=spread(
            "{accuracy:.3f}, {us:.0f} µs",
            each(
                "log",
                **{
                    "rooms (2000)": "wifi_rooms",
                    "pendigits (1500)": "pendigits",
                    "dna (1000)": "dna",
                    "occupancy (2056)": "occupancy",
                    "letter (1500)": "letter",
                },
            ),
        ),
    ),
    "ensembles-asking": Table(
        measured="ensembles",
        head="rule",
        rows=each(
            "rule",
            "at random",
            **{
                "`Variance()`": "Variance()",
                "`KL(least_weight=0.01)`": "KL(least_weight=0.01)",
            },
        ),
        columns={
            **{
                f"{title}TrumpApproval": (
                    {"numbers": "TrumpApproval", "order": order},
                    "{MAE:.3f} ± {sd:.3f}",
                )
                for title, order in _ORDERS.items()
            },
            **{
                f"{title}ChickWeights": (
                    {"numbers": "ChickWeights", "order": order},
                    "{MAE:.1f} ± {sd:.1f}",
                )
                for title, order in _ORDERS.items()
            },
        },
    ),
    "forest-growth": Table(
        measured="forest",
        head="ten trees, 20 tests",
        rows={
            "`inherit=False`": {"inherit": "False"},
            "children inherit the examples (default)": {"inherit": "True"},
        },
        columns=spread(
            "{wrong_%:.1f} ± {se:.1f}",
            {f"`min_weight={weight}`": {"min_weight": weight} for weight in (100, 50, 25)},
        ),
    ),
    "forest-parameters": Table(
        measured="forest",
        rows={
            "default": {"parameters": "default"},
            **{
                f"`{values}`": {"parameters": values}
                for values in ("n_models=30", "n_tests=10", "min_weight=20")
            },
        },
        columns=spread(
            "{wrong_%:.1f} ± {se:.1f}",
            {
                "labels are right": {"wrong_labels": 0.0},
                "one in five is wrong": {"wrong_labels": 0.2},
            },
        ),
    ),
    "persistence": Table(
        measured="persistence",
        head="made up",
        rows={"{stream}": {}},
        columns={
            "by each event": "{alone:.3f}",
            "twelve": "{twelve:.3f}",
            "thirteen": "{thirteen:.3f}",
            "gain": "{gain:+.3f} ± {gain_se:.3f}",
            "last answer repeated": "{repeated:.3f}",
        },
    ),
    "points-asking": Table(
        measured="points",
        rows={
            "Elec2, recorded": {"log": "elec2, recorded"},
            "WISDM, as in the file": {"log": "wisdm, recorded"},
            "WISDM, class after class": {"log": "wisdm, sequential"},
            "letters, random order": {"log": "letter, random"},
            "pendigits, random order": {"log": "pendigits, random"},
            "places of user 1, recorded": {"log": "places_1, recorded"},
            "WiFi rooms, recorded": {"log": "wifi_rooms, recorded"},
            "occupancy, recorded": {"log": "occupancy, recorded"},
        },
        columns={
            "events": ({"points": "exact"}, "{events}"),
            **spread(
                "{right_%:.1f}, {asked:.0f} asked", each("points", "exact", "m = 500", "m = 200")
            ),
        },
    ),
    "points-learned": Table(
        measured="points",
        rows=each(
            "given",
            "pendigits",
            **{
                "letters": "letter",
                "Elec2": "elec2",
                "occupancy": "occupancy",
                "WISDM": "wisdm",
                "WiFi rooms": "wifi_rooms",
            },
        ),
        columns=spread(
            "{right_%:.1f}",
            crossed(
                each("hyperparameters", "given", "learned"),
                each("points", "exact", "m = 500", "m = 200"),
                by=", ",
            ),
        ),
    ),
}
