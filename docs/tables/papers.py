"""Tables of the experiments of papers, reproduced."""

from __future__ import annotations

from collections.abc import Mapping

from table import Table, Where, crossed, each, spread

_F1 = "{f1:.3f} ± {f1_se:.3f}"
_ASKED = "{labels:.1f} + {challenges:.1f}"
_GAUSSIANS: Mapping[str, Where] = {
    f"{order}, {noise:.0%}".replace("%", " %"): {"order": order, "noise": noise, "$limit": limit}
    for order in ("random", "sequential")
    for noise, limit in ((0.1, 70), (0.4, 100))
}


def _isgp(**titled: str) -> Table:
    """Return a table of learners of the synthetic experiment."""
    return Table(
        measured="isgp",
        rows=each("learner", **titled),
        columns=spread(f"{_F1}<br>{_ASKED}", _GAUSSIANS),
    )


_EGP_RULES = each("rule", "random", "KL (paper)", "KL (living)", "variance", "deterministic")
_EGP_NUMBERS = ("Branin", "Currin", "robot pushing", "SARCOS")
_EGP_CLASSES = ("pendigits", "dna", "letter")


def _egp_rows(*per_cent: int) -> dict[str, Where]:
    """Return a row for each rate and rule; the learner with all labels comes last."""
    rates = {f"{n} %": {"$rate": n / 100} for n in per_cent}
    return crossed(rates, _EGP_RULES) | {"100 % | all labels": {"$rate": 1, "rule": "all labels"}}


def _egp_errors(preset: str) -> Table:
    """Return the table of errors of a preset."""
    nmse, error = (f"{{{what} $rate:~2p}} ± {{se $rate:~1p}}" for what in ("NMSE", "error"))
    of_problem = dict.fromkeys(_EGP_NUMBERS, nmse) | dict.fromkeys(_EGP_CLASSES, error)
    return Table(
        measured="egp",
        head="labels | rule",
        rows=_egp_rows(5, 10, 20, 40),
        columns={
            problem: ({"problem": problem, "preset": preset}, template)
            for problem, template in of_problem.items()
        },
    )


_PRIVILEGED_PROBLEMS = each(
    "problem",
    "noise",
    "guessed",
    "useless",
    "digits, pixels",
    "digits, margin",
    "MNIST+, poetic",
    "MNIST+, poetic margin",
    "MNIST+, yinyang",
    "MNIST+, yinyang margin",
)
_POOLS = ("moons", "breast cancer", "digits 3 vs 8", "digits 10", "wifi rooms")
_POOLS += ("USPS 3 vs 5", "USPS 4 vs 9")
_PICKERS = {
    **{
        f"`{criterion}`{more}": {"strategy": f"{criterion}{more}"}
        for more, criteria in {
            "": ("rand", "mvar", "rkhs", "hvar", "l2fm"),
            ", 5 at once": ("hvar", "l2fm"),
        }.items()
        for criterion in criteria
    },
    **{
        f"`{peer}`": {"strategy": peer}
        for peer in ("UncertaintySampling", "ProbabilisticAL", "CoreSet", "TypiClust", "MaxHerding")
    },
}


def _pool(pickers: Mapping[str, Where], *numbers: int) -> Table:
    """Return the table of accuracies with some numbers of labels."""
    of_pool = {pool: ({"pool": pool}, "{$n:.1f} ± {se $n:.1f}") for pool in _POOLS}
    return Table(
        measured="pool",
        head="labels |",
        rows=crossed({f"{n}": {"$n": n} for n in numbers}, pickers),
        columns={**of_pool, "mean": ({"pool": "mean"}, "{$n:.1f}")},
    )


_PLACED = each(
    "learner",
    **{
        "paper: never challenging": "paper: never challenging",
        "**paper: ISGP**": "paper: ISGP",
        "paper: always challenging": "paper: always challenging",
        "**default preset**": "default preset",
        "default at ISGP's questions": "default at ISGP's questions",
        "SRF at ISGP's questions": "SRF at ISGP's questions",
    },
)


def _location(noise: float) -> Table:
    """Return the table of how well learners tell people's places."""
    return Table(
        measured="location",
        head=f"{noise:.0%} wrong answers".replace("%", " %"),
        rows=crossed(_PLACED, {"": {"noise": noise}}, by=""),
        columns={
            "F1": _F1,
            "questions": _ASKED,
            "justified": "{precision:.0%}",
            "wrong kept": "{wrong_kept:.1%}",
            "µs": "{us_per_event:.0f}",
        },
    )


TABLES = {
    "isgp": _isgp(
        **{
            "paper: never challenging": "paper: never challenging",
            "**paper: ISGP**": "paper: ISGP",
            "paper: always challenging": "paper: always challenging",
            "default, 40 questions": "default, 40 questions",
            "**default, within 70 or 100**": "default, within $limit",
            "default, 80 questions": "default, 80 questions",
            "all labels, believed": "default: all labels, trusted",
            "SRF at ISGP's F1": "SRF at ISGP's F1",
            "SRF at ISGP's questions": "SRF at ISGP's questions",
            "SRF, online forest, at ISGP's questions": "SRF, online forest, at ISGP's questions",
        }
    ),
    "isgp-variants": Table(
        measured="isgp",
        rows=each(
            "variant",
            "paper, second answer always true",
            "paper, asking by Eq. 5",
            "paper, asking about everything",
            "default, c = 1",
            "default, always challenging",
            "default, challenging by Eq. 8",
            "default, noise in the variance",
            **{
                "the same, tuned": "the same, as many questions",
                "default, never challenging, tuned": "default, never challenging",
                "default, asking above a threshold, tuned": "default, asking above a threshold",
            },
        ),
        columns=spread("{f1:.3f}, {labels:.0f} + {challenges:.0f}", _GAUSSIANS),
    ),
    "egp-default": _egp_errors("default"),
    "egp-paper": _egp_errors("paper"),
    "egp-npll": Table(
        measured="egp",
        head="labels | rule",
        rows=_egp_rows(10, 20, 40),
        columns={
            f"{problem}, {preset}": (
                {"problem": problem, "preset": preset},
                "{NPLL $rate:.2f} ± {se $rate:.2f}",
            )
            for preset in ("default", "paper")
            for problem in _EGP_NUMBERS
        },
    ),
    "egp-rules": Table(
        measured="egp",
        rows={"{rule} against {against}": {}},
        columns={
            f"{measure}, {preset}": (
                {"measure": measure, "preset": preset},
                "{better} : {worse}",
            )
            for measure in ("NMSE", "NPLL", "error of classes")
            for preset in ("default", "paper")
        },
    ),
    "gpc-plus": Table(
        measured="gpc_plus",
        rows=_PRIVILEGED_PROBLEMS,
        columns={
            "GPC": ({"method": "GPC"}, "{error:.1f} ± {se:.1f}"),
            "x\\* as features": ({"method": "GPC, x* as features"}, "{error:.1f} ± {se:.1f}"),
            "GPC+": ({"method": "GPC+"}, "{error:.1f} ± {se:.1f}"),
            "gain": ({"method": "GPC+"}, "{gain:.2f} ± {se of gain:.2f}"),
            "GPC+, `paper`": ({"method": "GPC+, preset paper"}, "{error:.1f} ± {se:.1f}"),
            "gain of `paper`": ({"method": "GPC+, preset paper"}, "{gain:.2f} ± {se of gain:.2f}"),
        },
    ),
    "gpc-plus-conversations": Table(
        measured="gpc_plus",
        head="| doubted by",
        rows=crossed(
            {
                name.replace("*", "\\*"): {"conversation": name}
                for name in (
                    "40 % careless",
                    "10 % careless",
                    "20 % careless, one of two annotators unreliable",
                    "40 % careless, x* useless",
                )
            },
            {
                "record, unaware": {"doubted for": "annotator, learner unaware"},
                "record": {"doubted for": "annotator"},
                "noise": {"doubted for": "noise"},
                "both": {"doubted for": "both"},
            },
        ),
        columns={
            "AUC": "{auc_wrong:.3f} ± {se of auc_wrong:.3f}",
            "challenges": "{challenges:.1f} ± {se of challenges:.1f}",
            "precision": "{precision:.2f} ± {se of precision:.2f}",
            "recall": "{recall:.2f} ± {se of recall:.2f}",
            "error %": "{error:.2f} ± {se of error:.2f}",
        },
    ),
    "gpc-plus-online": Table(
        measured="gpc_plus",
        rows={"{online}": {}},
        columns={
            **{f"{n}": f"{{error {n}:.1f}}" for n in (60, 100, 200)},
            "300": "{error 300:.1f} ± {se:.1f}",
            "gain at 300": "{gain:.2f} ± {se of gain:.2f}",
            "AUC": "{auc:.3f}",
        },
    ),
    "gpc-plus-batches": Table(
        measured="gpc_plus",
        head="labels",
        rows=each("labels", 100, 200, 500),
        columns={
            "sweeps": "{sweeps}",
            "seconds": "{batch_s:.2f}",
            "`learn_log`": "{with_fit_s:.1f}",
            "the same, GPC": "{gpc_with_fit_s:.2f}",
        },
    ),
    "gpc-plus-kept": Table(
        measured="gpc_plus",
        head="which are retained",
        rows={"{which}": {}},
        columns={"error": "{error:.1f} ± {se:.1f}"},
    ),
    "pool": _pool(_PICKERS, 10, 20, 50),
    "pool-noise": _pool(
        {
            title: {"strategy": strategy}
            for name in ("hvar", "l2fm", "rkhs")
            for title, strategy in {
                f"`{name}`": name,
                f"`{name}`, noise 1e-6": f"{name}, noise 1e-6",
            }.items()
        },
        10,
        50,
    ),
    "location-10": _location(0.1),
    "location-40": _location(0.4),
    "location-course": Table(
        measured="location",
        head="moments",
        rows=_PLACED,
        columns={
            f"{noise:.0%}: {n}".replace("%", " %"): ({"noise": noise}, f"{{f1_at_{n}:.3f}}")
            for noise in (0.1, 0.4)
            for n in (25, 50, 100, 200, 300)
        },
    ),
}
