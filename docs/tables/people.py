"""Tables of what annotators do, of when they are asked, and of what is believed of them."""

from __future__ import annotations

from table import Table, each

_HALVES = "{accuracy:.3f}, {second half:.3f}"
_LIES = "{lies, mean:.0f} (at most {lies, most:.0f})"
_RESERVOIR = {"accuracy": "next event", "whole_log": "whole log"}

TABLES = {
    "annotators": Table(
        measured="annotators",
        head="annotators",
        rows={"{annotators}": {}},
        columns={
            "off after 35: running": "{at 35, running:.3f}",
            "together": "{at 35, joint:.3f}",
            "off in the end: running": "{end, running:.3f}",
            "together, in the end": "{end, joint:.3f}",
            "accuracy": "{accuracy:.3f}",
            "labels": "{labels:.0f}",
            "challenges": "{challenges:.0f}",
        },
    ),
    "quarantine": Table(
        measured="annotators",
        head="log",
        rows=each("log", "wifi_rooms", "places_1", "occupancy", "wisdm", "pendigits", "all"),
        columns={
            "without the liar": ({"quarantine": "without the liar"}, _HALVES),
            "with, quarantine": ({"quarantine": "with the liar"}, _HALVES),
            "with, no quarantine": ({"quarantine": "with the liar, no quarantine"}, _HALVES),
            "named": ({"quarantine": "with the liar"}, "{named} of {runs}"),
            "lies": ({"quarantine": "with the liar"}, _LIES),
        },
    ),
    "quarantine-scenes": Table(
        measured="annotators",
        head="the third",
        rows={
            "there is none": {"quarantine": "without the liar", "log": "all"},
            "always lies": {"quarantine": "with the liar", "log": "all"},
            "always lies, no quarantine": {
                "quarantine": "with the liar, no quarantine",
                "log": "all",
            },
            "lies about one class": {"quarantine": "lies about one class", "log": "all"},
            "lies after 30 answers": {"quarantine": "lies after 30 answers", "log": "all"},
        },
        columns={
            "accuracy": _HALVES,
            "asked": "{labels:.0f}",
            "learned in the end": "{learned:.0f}",
            "named": "{named} of {runs}",
            "taken back": _LIES,
            "honest named": "{honest named}",
        },
    ),
    "wifi": Table(
        measured="wifi",
        rows={"{learner}": {}},
        columns={
            "accuracy": "{accuracy:.3f} ± {accuracy_se:.3f}",
            "macro F1": "{macro_f1:.3f}",
            "labels asked": "{labels_asked:.0f}",
            "challenges": "{challenges:.0f}",
            "challenge precision": "{challenge_precision:.0%}",
            "wrong labels kept": "{wrong_labels_kept:.1%}",
        },
    ),
    "skeptical": Table(
        measured="skeptical",
        rows={"{learner}": {}},
        columns={
            "{log}": (
                {},
                "{accuracy:.3f} ± {se:.3f}, {labels:.0f} labels<br>"
                "{challenges:.0f}, {precision:.0%}, {wrong_kept:.0%}",
            ),
        },
    ),
    "asking": Table(
        measured="asking",
        head="log",
        rows={"{log}": {}},
        columns={
            f"{n} a day: {title}": ({"per_day": n}, template)
            for n in (30, 60)
            for title, template in {
                "hindsight": "{hindsight:.3f}",
                "**`PacedBudget`**": "{paced:.3f}",
                "`RateBudget`": "{rate:.3f}",
                "used": "{used:.0%}",
            }.items()
        },
    ),
    "asking-away": Table(
        measured="asking",
        head="log",
        rows={"{log}": {}},
        columns={
            f"{schedule}: {title}": ({"schedule": schedule}, template)
            for schedule in ("night", "work")
            for title, template in {
                "answered": "{answered:.0%} → {answered_available:.0%}",
                "questions": "{asked:.0f} → {asked_available:.0f}",
                "accuracy": "{accuracy:.3f} → {accuracy_available:.3f}",
            }.items()
        },
    ),
    "asking-late": Table(
        measured="asking",
        head="log",
        rows={"{log}": {}},
        columns={
            f"{delay} events late: {title}": ({"delay": delay}, template)
            for delay in (10, 30, 100)
            for title, template in {
                "questions": "{asked:.0f} → {asked_counted:.0f}",
                "accuracy": "{accuracy:.3f} → {accuracy_counted:.3f}",
            }.items()
        },
    ),
    "reservoir": Table(
        measured="reservoir",
        rows={
            **{
                log: {"log": log, **{f"${of}": f" ± {{{of}_se:.1p}}" for of in _RESERVOIR}}
                for log in ("wifi_rooms", "occupancy", "places_1", "elec2", "wisdm", "pendigits")
            },
            "mean": {"log": "mean", **{f"${of}": "" for of in _RESERVOIR}},
        },
        columns={
            f"{judged}: {title}": ({"asks": asks}, f"{{{of}_advantage:+.1p}}${of}")
            for of, judged in _RESERVOIR.items()
            for title, asks in {
                "`RandomAsk`": "RandomAsk",
                "`rand` alone": "rand alone",
                "`hvar` alone": "hvar alone",
                "`l2fm` alone": "l2fm alone",
                "`l2fm` beside": "SkepticalAsk, l2fm",
            }.items()
        },
    ),
}
