"""Tables about annotators: their answers, the questions to them, and how far they are believed."""

from __future__ import annotations

from table import Table, crossed, each

_HALVES = "{accuracy:.3f}, {second half:.3f}"
_LIES = "{lies, mean:.0f} (at most {lies, most:.0f})"
_RESERVOIR = {"accuracy": "next event", "whole_log": "whole log"}
_CONVERSED = {
    "accuracy": "{accuracy:.3f}",
    "macro F1": "{F1:.3f}",
    "labels": "{labels:.0f}",
    "challenges": "{challenges:.0f}",
    "wrong kept": "{wrong kept:.1%}",
    "µs": "{us per event:.0f}",
}
_AT_MOST = each("answers at most", **{"120 at most": 120, "no limit": None})
_TWICE = {
    "answers": "{answers:.0f}",
    "labels": "{labels:.0f}",
    "accuracy": "{accuracy:.3f}",
    "gain": "{gain:+.3f} ± {gain_se:.3f}",
    "wrong labels kept": "{wrong_kept:.1%}",
    "difference": "{wrong_kept_gain:+.1p} ± {wrong_kept_se:.1%}",
}
_ABOVE = "{above first:+.3f} ± {se:.3f}"


def _per_day(templates: dict[str, str]) -> Table:
    """Return a table of two daily limits side by side."""
    return Table(
        measured="asking",
        head="log",
        rows={"{log}": {}},
        columns={
            f"{n} a day: {title}": ({"per_day": n}, template)
            for n in (30, 60)
            for title, template in templates.items()
        },
    )


TABLES = {
    "annotators": Table(
        measured="annotators",
        head="annotators",
        rows={"{annotators}": {}},
        columns={
            "error after 35: running": "{at 35, running:.3f}",
            "together": "{at 35, joint:.3f}",
            "error at the end: running": "{end, running:.3f}",
            "together, at the end": "{end, joint:.3f}",
            "accuracy": "{accuracy:.3f}",
            "labels": "{labels:.0f}",
            "challenges": "{challenges:.0f}",
        },
    ),
    "four-people": Table(
        measured="error_rates",
        rows=each("annotator", "careful", "careless", "declines every second question", "stubborn"),
        columns={
            "true error rate": ({"seed": 1}, "{told to err:.0%}"),
            **{
                f"seed {seed}": ({"seed": seed}, "{wrong:.0%}; {running:.0%}, {together:.0%}")
                for seed in (1, 2, 3, 4)
            },
        },
    ),
    "by-all-answers": Table(
        measured="error_rates",
        head="log | wrong answers",
        rows=crossed(
            each("log", "wifi_rooms", "places_1", "occupancy", "wisdm"),
            each("wrong_answers", **{"10 %": 0.1, "20 %": 0.2, "40 %": 0.4}),
        ),
        columns={
            "accuracy by the running estimate": "{accuracy, running:.3f}",
            "difference with the one by all answers": "{gain:+.3f} ± {gain_se:.3f}",
            "challenges": "{challenges, running:.0f} → {challenges, together:.0f}",
            "wrong labels kept": "{wrong_kept, running:.1%} → {wrong_kept, together:.1%}",
        },
    ),
    "label-errors": Table(
        measured="label_errors",
        head="logs | wrong answers",
        rows=crossed(
            each("log", "wifi_rooms", "wisdm", "places_1", "occupancy", "pendigits"),
            each("wrong", **{"20 %": "20%"}),
        )
        | crossed(
            each("log", **{"all five": "all"}),
            each(
                "wrong",
                **{"10 %": "10%", "20 %": "20%", "40 %": "40%"},
                **{"20 %, next class": "20%, next class"},
            ),
        ),
        columns={
            "labels": "{labels:.0f}",
            "of which wrong": "{wrong labels:.0f}",
            "challenges": "{challenges:.0f}",
            "**wrong ones challenged**": "**{challenged:.0%}**",
            "cleanlab, logistic regression": "{logistic regression:.0%}",
            "random forest": "{random forest:.0%}",
            "10 neighbours": "{10 neighbours:.0%}",
            "Gaussian process": "{Gaussian process:.0%}",
        },
    ),
    "careless": Table(
        measured="label_errors",
        head="asked twice",
        rows={"{overlap:.0%}": {}},
        columns={
            "answers": "{answers:.0f}",
            "challenges": "{challenges:.0f}",
            "**off: streamgp**": "**{off, streamgp:.3f}**",
            "Dawid and Skene": "{off, Dawid and Skene:.3f}",
            "one coin": "{off, one coin:.3f}",
            "**labels wrong: streamgp**": "**{wrong, streamgp:.1%}**",
            "Dawid and Skene, wrong": "{wrong, Dawid and Skene:.1%}",
            "one coin, wrong": "{wrong, one coin:.1%}",
            "CROWDLAB, wrong": "{wrong, CROWDLAB, random forest:.1%}",
        },
    ),
    "reliability": Table(
        measured="annotators",
        head="stated P(wrong), from",
        rows={"{stated_from}": {}},
        columns={
            "answers": "{answers}",
            "stated, mean": "{stated:.3f}",
            "wrong": "{wrong:.3f}",
        },
    ),
    "new-classes": Table(
        measured="annotators",
        head="wrong answers",
        rows={"{doubted_of}": {}},
        columns={
            "labels never heard before": "{answers}",
            "wrong": "{wrong:.3f} ± {wrong_se:.3f}",
            "stated with `doubts_new`": "{stated:.3f}",
        },
    ),
    "giving-in": Table(
        measured="annotators",
        head="`suggestible`",
        rows={"{suggestible}": {}},
        columns={
            "accuracy": "{accuracy:.3f}",
            "gain": "{gain:+.3f} ± {gain_se:.3f}",
            "challenges": "{challenges:.0f}",
            "right labels spoiled": "{spoiled:.1f}",
            "wrong labels kept": "{wrong_kept:.1%}",
        },
    ),
    "second-questions": Table(
        measured="annotators",
        head="answers | `overlap`",
        rows=crossed(_AT_MOST, {"{overlap}": {}}),
        columns={
            "second questions": "{second:.0f}",
            **_TWICE,
            "off": "{end, running:.3f}, {end, joint:.3f}",
        },
    ),
    "asked-again": Table(
        measured="annotators",
        head="answers | `repeat`",
        rows=crossed(_AT_MOST, {"{repeat}": {}}),
        columns={
            "asked again": "{second:.0f}",
            **_TWICE,
            "alike: 5 %": "{alike 0:.2f}",
            "20 %": "{alike 1:.2f}",
            "40 %": "{alike 2:.2f}",
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
            "absent": {"quarantine": "without the liar", "log": "all"},
            "always lies": {"quarantine": "with the liar", "log": "all"},
            "always lies, no quarantine": {
                "quarantine": "with the liar, no quarantine",
                "log": "all",
            },
            "always lies, `overlap = 0.2`": {
                "quarantine": "with the liar, overlap .2",
                "log": "all",
            },
            "lies about one class": {"quarantine": "lies about one class", "log": "all"},
            "lies about one class, `overlap = 0.2`": {
                "quarantine": "lies about one class, overlap .2",
                "log": "all",
            },
            "lies after 30 answers": {"quarantine": "lies after 30 answers", "log": "all"},
            "lies about every event, asked or not": {"quarantine": "flooding", "log": "all"},
        },
        columns={
            "accuracy": _HALVES,
            "asked": "{labels:.0f}",
            "learned at the end": "{learned:.0f}",
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
    "asking": _per_day(
        {
            "hindsight": "{hindsight:.3f}",
            "**`PacedBudget`**": "{paced:.3f}",
            "`RateBudget`": "{rate:.3f}",
            "used": "{used:.0%}",
        }
    ),
    "asking-start": _per_day(
        {
            "hindsight": "{start_hindsight:.3f}",
            "**`at_start`**": "{start:.3f}",
            "used": "{start_used:.0%}",
        }
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
    "compare-learners": Table(
        measured="compare",
        head="learner",
        rows={"{learner}": {}},
        columns={
            "accuracy 3 %": ({"share": "3%"}, "{accuracy:.3f}"),
            "10 %": ({"share": "10%"}, "{accuracy:.3f}"),
            "macro F1 3 %": ({"share": "3%"}, "{F1:.3f}"),
            "macro F1 10 %": ({"share": "10%"}, "{F1:.3f}"),
            "labels 3 %": ({"share": "3%"}, "{labels:.0f}"),
            "labels 10 %": ({"share": "10%"}, "{labels:.0f}"),
            "challenges": ({"share": "10%"}, "{challenges:.0f}"),
            "wrong kept": ({"share": "10%"}, "{wrong kept:.1%}"),
            "µs": ({"share": "10%"}, "{us per event:.0f}"),
        },
        best="10 %",
    ),
    "compare-asking": Table(
        measured="compare",
        head="asks by",
        rows={"{asks by}": {}},
        columns={
            "accuracy": "{accuracy:.3f}",
            "macro F1": "{F1:.3f}",
            "above default": _ABOVE,
            "labels": "{labels:.0f}",
            "hard limit": "{hard limit:.0%}",
            "challenges": "{challenges:.0f}",
            "wrong kept": "{wrong kept:.1%}",
            "µs": "{us per event:.0f}",
        },
        best="accuracy",
    ),
    "compare-challenging": Table(
        measured="compare",
        head="challenges by",
        rows={"{challenges by}": {}},
        columns=_CONVERSED,
    ),
    "compare-questions": Table(
        measured="compare",
        head="questions for | challenges by",
        rows=crossed(
            each("share", **{"5 % of the events": "5%", "10 %": "10%", "20 %": "20%"}),
            {"{all questions}": {}},
        ),
        columns={
            "accuracy": "{accuracy:.3f}",
            "macro F1": "{F1:.3f}",
            "above": _ABOVE,
            "labels": "{labels:.0f}",
            "challenges": "{challenges:.0f}",
            "wrong kept": "{wrong kept:.1%}",
        },
    ),
    "compare-tired": Table(
        measured="compare",
        rows={"{tired annotator}": {}},
        columns=_CONVERSED,
    ),
    "review": Table(
        measured="review",
        head="fresh labels | log",
        rows={"{fresh_labels} | {log}": {}},
        columns={
            "without a review: accuracy": ({"review": "none"}, "{accuracy:.3f}"),
            "questions": ({"review": "none"}, "{questions:.0f}"),
            "wrong kept": ({"review": "none"}, "{wrong_kept:.1%}"),
            **{
                title: ({"review": "leave one out"}, template)
                for title, template in {
                    "with: accuracy": "{accuracy:.3f}",
                    "with: questions": "{questions:.0f}",
                    "about old labels (justified)": "{reviews:.1f} ({reviews_justified:.1f})",
                    "with: wrong kept": "{wrong_kept:.1%}",
                    "advantage": "{advantage:+.4f} ± {advantage_se:.4f}",
                }.items()
            },
        },
    ),
    "review-numbers": Table(
        measured="review_numbers",
        head="wrong answers",
        rows={"{wrong_answers:.0%}": {"function": "all"}},
        columns={
            **{
                f"{title}: {what}": ({"review": review}, template)
                for title, review in {
                    "without": "none",
                    "with": "leave one out",
                    "more labels": "none, more labels",
                }.items()
                for what, template in {
                    "NMSE (median)": "{NMSE:.3f} ({NMSE_median:.3f})",
                    "wrong kept": "{wrong_kept:.1%}",
                    "questions": "{questions:.0f}",
                }.items()
            },
            "of a review (about wrong numbers)": (
                {"review": "leave one out"},
                "{reviews:.1f} ({reviews_justified:.1f})",
            ),
            "gain over more labels": (
                {"review": "none, more labels"},
                "{with_review_less:+.3f} ± {with_review_less_se:.3f}",
            ),
        },
    ),
    "beliefs": Table(
        measured="beliefs",
        head="wrong answers",
        rows={"{wrong_answers:.0%}": {"q": "default"}},
        columns={
            title: (
                {"q": q},
                "{accuracy:.3f}, {challenges:.0f} ({of_right_labels:.0f}), {wrong_kept:.1%}",
            )
            for title, q in {
                "*q = s*": "s",
                "*q = (1 − v) s + v / C* for all": "(1 - v) s + v / C for all",
                "for known classes (default)": "default",
            }.items()
        },
    ),
    "review-right": Table(
        measured="review",
        head="wrong answers",
        rows={"{wrong_answers:.0%}": {}},
        columns={
            "accuracy": "{accuracy:.3f}",
            "labels": "{labels:.0f}",
            "challenges": "{challenges:.0f}",
            "of right labels": "{of_right_labels:.0f}",
            "wrong kept": "{wrong_kept:.1%}",
        },
    ),
}
