"""The same classifier in River's evaluator, and in conversation with a careless annotator.

River's `progressive_val_score` hands over the true label whenever the model asks. In
`interactive_val_score` an annotator answers, here wrongly one time in five; the model learns what
the annotator says and may challenge it. The true label only goes to the metric.

Prints:

    An annotator who never errs:
    [500] MacroF1: 100.00% – 52 samples used
    [1,000] MacroF1: 99.90% – 119 samples used
    [1,500] MacroF1: 99.67% – 154 samples used
    [2,000] MacroF1: 99.70% – 196 samples used
    One who errs in one of five answers, and is challenged:
    MacroF1: 98.45%
    2,000 events: 207 labels asked, 63 challenges (61.9% justified, 33 repaired, 0 spoiled), ...
    The same one, believed:
    MacroF1: 97.30%
    2,000 events: 241 labels asked, 0 challenges, 241 labels learned (19.9% wrong)
"""

from river import evaluate, metrics

from streamgp import SimulatedAnnotator, datasets, interactive_val_score, isgp
from streamgp.query import NeverChallenge


def main() -> None:
    print("An annotator who never errs:")
    evaluate.progressive_val_score(
        datasets.WiFiRooms(), isgp(seed=1), metrics.MacroF1(), print_every=500
    )

    for title, model in (
        ("One who errs in one of five answers, and is challenged:", isgp(seed=1)),
        ("The same one, believed:", isgp(seed=1).clone({"challenge": NeverChallenge()})),
    ):
        print(title)
        result = interactive_val_score(
            datasets.WiFiRooms(),
            model,
            metrics.MacroF1(),
            annotator=SimulatedAnnotator(error_rate=0.2, classes=[1, 2, 3, 4], seed=1),
        )
        print(result)


if __name__ == "__main__":
    main()
