"""Any River regressor asks for numbers, and streamgp's know where it pays.

1001 daily estimates of a president's approval, in percent, from five polls; the log comes with
River. Most of River's regressors say nothing of their own doubt, so a tenth of the events is asked
about at random. Gaussian processes ask where their prediction varies most.

Prints:

    River's ARFRegressor, at random: 100 numbers asked, off by 1.90 on average
    GPRegressor, by variance: 100 numbers asked, off by 0.52 on average
    EnsembleGPRegressor, by variance: 100 numbers asked, off by 0.57 on average
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
        print(
            f"{name}: {result.n_asked} numbers asked, off by {result.metric.get():.2f} on average"
        )


if __name__ == "__main__":
    main()
