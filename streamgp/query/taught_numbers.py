"""A learner of numbers, the raw examples that it was taught, and the scaling between the two."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from streamgp.base import Distribution, Example, Features, Label, State
from streamgp.learners.normal import Normal
from streamgp.learners.targets import checked_target
from streamgp.moments import Moments
from streamgp.query.taught import TaughtLearner
from streamgp.scaling import Scaling
from streamgp.values import LARGEST

_NOTHING_KNOWN = Normal(mu=0.0, sigma=1.0)


class TaughtNumbers(TaughtLearner[Distribution]):
    """A River regressor with a memory of what it was taught, behind a scaling.

    One that gives no distribution with its predictions is taken to be off by as much as it was
    before: its forecast is normal, with the mean square of its errors, each made before the target
    was learned, as variance. The variance of the targets counts as one more such error.

    Parameters
    ----------
    template
        The regressor; it stays unlearned.
    scaling
        How features reach it.

    Attributes
    ----------
    targets
        Mean and spread of the targets on record.

    """

    # targets    a function of the examples on record, in their order
    # _n_errors, _squares  errors of a learner without distributions, and the sum of their squares
    _question = "predict_one"

    def __init__(self, template: Any, scaling: Scaling) -> None:
        super().__init__(template, scaling)
        # Nobody hands them over here, so what a log says of them is not learned after a restart.
        self._takes_privileged = False
        self.targets = Moments()
        self._n_errors = 0
        self._squares = 0.0

    def teach(
        self,
        x: Features,
        y: Label,
        event_id: str | None,
        *,
        privileged: Features | None = None,
    ) -> None:
        """Teach an example; if the learner cannot take it, nothing changes.

        Raises
        ------
        NotPositiveDefiniteError
            If a Gaussian process cannot take it.
        TypeError
            If the target is no number.
        ValueError
            If the target is not finite or too large, the event was already taught, or the learner
            is off by more than its forecasts can say.

        """
        checked = checked_target(y, LARGEST)
        if self._options:
            super().teach(x, y, event_id, privileged=privileged)
            return
        forecast = self.belief(x).mu
        squares = self._squares + (checked - forecast) * (checked - forecast)
        if not math.isfinite(squares):
            # It would be the variance of all forecasts to come.
            raise ValueError(
                f"{type(self._template).__name__} forecasts {forecast:.3g} where {y!r} was "
                "observed, expected an error whose square is finite; scale the features"
            )
        super().teach(x, y, event_id, privileged=privileged)
        self._n_errors += 1
        self._squares = squares

    def state(self) -> State:
        """Return what must survive a restart beside the examples."""
        errors = {} if self._options else {"errors": [self._n_errors, self._squares]}
        return {**super().state(), **errors}

    def load_state(self, state: State, examples: Sequence[Example]) -> None:
        """Become what `state` and `examples` were taken from; this object has learned nothing."""
        self._n_errors, self._squares = state.get("errors", [0, 0.0])
        super().load_state(state, examples)

    def _believed(self, seen: Features) -> Distribution:
        answer = self.learner.predict_one(seen, **self._options)
        if answer is None:
            # Of River's regressors, AMFRegressor before its first label.
            return _NOTHING_KNOWN
        if not self._options:
            answer = Normal(mu=float(answer), sigma=self._usual_error)
        if not (math.isfinite(answer.mu) and 0.0 <= answer.sigma < math.inf):
            if not self._examples:
                # Some scalers make nothing finite of the first event, as nothing came before it.
                return _NOTHING_KNOWN
            raise ValueError(
                f"{type(self._template).__name__} or its transformers make no finite forecast of "
                "these features; leave out what is missing, or scale what comes late"
            )
        return answer  # type: ignore[no-any-return]

    @property
    def _usual_error(self) -> float:
        spread = self.targets.std
        return math.sqrt((spread * spread + self._squares) / (1 + self._n_errors))

    def _note(self, y: Label) -> None:
        self.targets.add(float(y))

    def _prime(self, learner: Any, state: State | None) -> None:
        learner.load_state(state)

    @property
    def _relabels(self) -> bool:
        # The statistics of the targets would differ by rounding from those of one taught anew.
        return False

    def _check(self, y: Label) -> None:
        checked_target(y, LARGEST)

    def _rebuild(self, state: State | None = None) -> None:
        self.targets = Moments()
        for example in self._examples.values():
            self.targets.add(float(example.y))
        super()._rebuild(state)
