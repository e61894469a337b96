"""The same classifier in River's evaluator, and in conversation with a careless annotator.

River's `progressive_val_score` hands over the true label whenever the model asks. In
`interactive_val_score` an annotator answers, here wrongly one time in five; the model learns what
the annotator says and may challenge it. Only the metric gets the true label.

Prints:

    An annotator who never errs:
    [500] MacroF1: 100.00% – 51 samples used
    [1,000] MacroF1: 99.90% – 86 samples used
    [1,500] MacroF1: 99.47% – 113 samples used
    [2,000] MacroF1: 99.20% – 136 samples used
    An annotator who errs in one of five answers, and is challenged:
    MacroF1: 97.50%
    2,000 events: 137 labels asked, 46 challenges (54.3% justified, 22 repaired, 0 spoiled), ...
    The same annotator, always believed:
    MacroF1: 95.33%
    2,000 events: 161 labels asked, 0 challenges, 161 labels learned (21.1% wrong)
"""

from river import evaluate, metrics

from streamgp import SimulatedAnnotator, datasets, interactive_val_score, isgp
from streamgp.query import NeverChallenge


def main() -> None:
    print("An annotator who never errs:")
    evaluate.progressive_val_score(
        datasets.WiFiRooms(), isgp(seed=1), metrics.MacroF1(), print_every=500
    )

    believing = isgp(seed=1, challenge=NeverChallenge())
    for title, model in (
        ("An annotator who errs in one of five answers, and is challenged:", isgp(seed=1)),
        ("The same annotator, always believed:", believing),
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
