"""An ensemble of Gaussian processes: the labels show which kernel fits.

Seven experts with different length scales learn the rooms. One event in ten is asked about, and one
answer in five is wrong. An event costs the same, however many labels were learned before.

Prints:

    Accuracy: 91.18%
    2,000 events: 199 labels asked, 76 challenges (68.4% justified, 39 repaired, 0 spoiled), ...
    expert 1: 0.00
    expert 2: 0.00
    expert 3: 0.00
    expert 4: 1.00 ####################
    expert 5: 0.00
    expert 6: 0.00
    expert 7: 0.00
"""

from river import metrics

from streamgp import (
    EnsembleGPClassifier,
    SimulatedAnnotator,
    SkepticalClassifier,
    datasets,
    interactive_val_score,
)
from streamgp.query import BestVersusSecond, RateBudget


def main() -> None:
    model = SkepticalClassifier(
        EnsembleGPClassifier(seed=1), BestVersusSecond(0.0), budget=RateBudget(0.1), seed=1
    )
    annotator = SimulatedAnnotator(error_rate=0.2, classes=[1, 2, 3, 4], seed=1)
    print(
        interactive_val_score(datasets.WiFiRooms(), model, metrics.Accuracy(), annotator=annotator)
    )
    for number, weight in enumerate(model.learner.weights, start=1):
        print(f"expert {number}: {weight:.2f} {'#' * round(20 * weight)}".rstrip())


if __name__ == "__main__":
    main()
