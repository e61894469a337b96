"""Numbers, asked for where predictions are least certain; some answers are grossly wrong.

A real log: 1001 daily estimates of a president's approval, in percent, and five polls to predict
them from; it comes with River. Three days in ten are asked about, those with the largest predictive
variance. The annotator reads off the truth to 0.2 percentage points, but one answer in ten is far
off. Every prediction is scored before anything is asked. The mean absolute error falls by 18 % when
numbers outside the expected interval are challenged, and old ones reviewed: four in five of the
challenged answers were wrong, and most of the wrong answers were challenged.

Prints:

    Every answer believed:
    MAE: 0.62...
    1,001 events: 302 labels asked, 0 challenges, 302 labels learned (11.3% wrong)
    Answers outside the 99 % interval challenged:
    MAE: 0.51...
    1,001 events: 296 labels asked, 51 challenges (80.4% justified, 38 repaired, 0 spoiled), ...
    One challenge in words:
    Are you sure that it is 83? Expected 38.2 ± 0.3; wrong with probability 1.00
"""

from river import datasets, metrics

from streamgp import (
    GPRegressor,
    InteractiveLoop,
    SimulatedMeasurer,
    SkepticalRegressor,
    interactive_val_score,
)
from streamgp.budgets import RateBudget
from streamgp.interactive import Answer, Challenge, Event
from streamgp.query import NeverChallenge, OutsideInterval


def main() -> None:
    for title, rule in (
        ("Every answer believed:", NeverChallenge()),
        ("Answers outside the 99 % interval challenged:", OutsideInterval(level=0.99)),
    ):
        print(title)
        model = SkepticalRegressor(
            GPRegressor(), challenge=rule, budget=RateBudget(0.3), warm_up=100, seed=1
        )
        annotator = SimulatedMeasurer(error_rate=0.1, noise=0.2, outlier=4.0, seed=1)
        print(
            interactive_val_score(
                datasets.TrumpApproval(), model, metrics.MAE(), annotator=annotator
            )
        )

    print("One challenge in words:")
    print(in_words(a_challenge()))


def a_challenge() -> Challenge:
    """Teach a loop a hundred days, then give it a number with two digits in the wrong order."""
    loop = InteractiveLoop(SkepticalRegressor(GPRegressor(), warm_up=100, seed=1))
    for day, (x, y) in enumerate(datasets.TrumpApproval().take(101)):
        event = Event(event_id=str(day), x=x, occurred_at=float(day))
        _, request = loop.on_event(event, now=float(day))
        given = y if day < 100 else round(y) % 10 * 10 + round(y) // 10
        answer = Answer(
            answer_id=f"{day}/answer",
            request_id=request.request_id,
            event_id=event.event_id,
            y=given,
            annotator="ann",
            answered_at=float(day),
        )
        message, *_ = loop.on_answer(answer, now=float(day))  # others may be about earlier days
    assert isinstance(message, Challenge)
    return message


def in_words(challenge: Challenge) -> str:
    assert challenge.std is not None
    return (
        f"Are you sure that it is {challenge.given}? Expected {challenge.suggested:.1f} "
        f"± {challenge.std:.1f}; wrong with probability {challenge.probability_wrong:.2f}"
    )


if __name__ == "__main__":
    main()
