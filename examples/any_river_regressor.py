"""Any River regressor can ask for numbers, and streamgp's know where it pays off.

1001 daily estimates of a president's approval, in percent, from five polls; the log comes with
River. Most of River's regressors do not state their uncertainty, so they ask about a tenth of the
events at random. Gaussian processes ask where the variance of their prediction is largest.

Prints:

    River's ARFRegressor, at random: 100 numbers asked for, mean absolute error 1.90
    GPRegressor, by variance: 100 numbers asked for, mean absolute error 0.48
    EnsembleGPRegressor, by variance: 99 numbers asked for, mean absolute error 0.55
"""

from river import datasets, forest, metrics

from streamgp import (
    EnsembleGPRegressor,
    GPRegressor,
    SimulatedMeasurer,
    SkepticalRegressor,
    interactive_val_score,
)
from streamgp.query import AlwaysAsk, RateBudget, Variance


def main() -> None:
    for name, model, rule in (
        ("River's ARFRegressor, at random", forest.ARFRegressor(seed=1), AlwaysAsk()),
        ("GPRegressor, by variance", GPRegressor(), Variance()),
        ("EnsembleGPRegressor, by variance", EnsembleGPRegressor(seed=1), Variance()),
    ):
        result = interactive_val_score(
            datasets.TrumpApproval(),
            SkepticalRegressor(model, rule, budget=RateBudget(0.1), seed=1),
            metrics.MAE(),
            annotator=SimulatedMeasurer(noise=0.2, seed=1),
        )
        error = result.metric.get()
        print(f"{name}: {result.n_asked} numbers asked for, mean absolute error {error:.2f}")


if __name__ == "__main__":
    main()
