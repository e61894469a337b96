"""The parts of a page that show what probabilities and distributions were worth."""

from __future__ import annotations

from collections.abc import Sequence

from streamgp.report.markup import Html, el, facts_list
from streamgp.report.numbers import amount, percent
from streamgp.report.run import ByConfidence, Calibration, Distributions, Reliability
from streamgp.report.svg import Line, chart

_ABOUT = (
    "Probability: that of the predicted class. Confidence: one minus the second largest "
    "probability divided by the largest, 0 for a tie, 1 for certainty."
)


def confidence(calibration: Calibration) -> list[Html]:
    """Return the numbers, the reliability diagram and the histogram of confidences.

    Parameters
    ----------
    calibration
        What is shown.

    """
    if not calibration.n:
        return [el("p", "No prediction could be compared with a truth.", class_="none")]
    return [
        el("p", _ABOUT),
        _facts(calibration),
        el(
            "div",
            _reliability(calibration.reliability),
            _histogram(calibration.confidence),
            class_="pair",
        ),
    ]


def distributions(scores: Distributions) -> list[Html]:
    """Return the scores of predicted distributions of numbers.

    Parameters
    ----------
    scores
        What is shown.

    """
    if not scores.n:
        text = "No prediction with a standard deviation could be compared with a truth."
        return [el("p", text, class_="none")]
    return [
        el("p", "What is predicted is taken as a normal distribution, as messages describe it."),
        facts_list(
            [
                ("Within 90 %", percent(scores.coverage, 1), "of the truths; 90 % if calibrated"),
                ("NPLL", amount(scores.npll), "negative log density, in nats; less is better"),
                ("CRPS", amount(scores.crps), "as an absolute error; less is better"),
            ]
        ),
    ]


def _facts(c: Calibration) -> Html:
    return facts_list(
        [
            (
                "Calibration error",
                percent(c.calibration_error, 1),
                "mean distance of probability and share right",
            ),
            ("Brier score", amount(c.brier), "squared distance from the truth, 0 to 2"),
            ("Overconfidence", percent(c.overconfidence), "mean confidence when wrong"),
            ("Underconfidence", percent(c.underconfidence), "mean lack of it when right"),
            ("Right before wrong", amount(c.auc), "area under the curve, 0.5 to 1"),
        ]
    )


def _reliability(reliability: Reliability) -> Html:
    diagonal = (0.0, *reliability.mean, 1.0)  # every point, for the table of numbers
    return chart(
        [
            Line(name="right", x=reliability.mean, y=reliability.share),
            Line(name="calibrated", x=diagonal, y=diagonal),
        ],
        title="Share right, by probability",
        of="probability of the predicted class",
        show=percent,
        top=1.0,
        shares=True,
    )


def _histogram(confidences: ByConfidence) -> Html:
    return chart(
        [_steps("right", confidences.right), _steps("wrong", confidences.wrong)],
        title="Right and wrong predictions, by confidence",
        of="confidence; each kind adds up to 100 %",
        show=percent,
        shares=True,
    )


def _steps(name: str, counts: Sequence[int]) -> Line:
    """Return the outline of a histogram, in shares of all that it counts."""
    total, n = sum(counts), len(counts)
    if not total:
        return Line(name=name, x=(), y=())
    x = [edge / n for i in range(n) for edge in (i, i + 1)]
    return Line(name=name, x=x, y=[c / total for c in counts for _ in range(2)])
