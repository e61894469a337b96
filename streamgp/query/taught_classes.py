"""A learner of classes, the raw examples that it was taught, and the scaling between the two."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from streamgp.base import Belief, Features, Label, Posterior, State, check_label
from streamgp.query.pool_criteria import Joint
from streamgp.query.taught import _FOREIGN, TaughtLearner


class TaughtClasses(TaughtLearner[Belief]):
    """A River classifier with a memory of what it was taught, behind a scaling."""

    _question = "predict_proba_one"

    def joint(self, xs: Mapping[str, Features]) -> tuple[list[str], Joint | None]:
        """Return what is believed of several events at once; changes nothing.

        Returns
        -------
        The events that can be used, and what is believed of them in this order, None for none. The
        statistics in use may have changed since an event came: it can be too large by now.

        """
        try:
            return self._joint(xs)
        except (ValueError, TypeError, *_FOREIGN):
            return self._joint({event_id: x for event_id, x in xs.items() if self._can_use(x)})

    def _joint(self, xs: Mapping[str, Features]) -> tuple[list[str], Joint | None]:
        if not xs:
            return [], None
        seen = [self.scaling.transform(x) for x in xs.values()]
        return list(xs), Joint.of_indicators(*self.learner.joint(seen))

    def _can_use(self, x: Features) -> bool:
        try:
            self.belief(x)
        except (ValueError, TypeError):
            return False
        return True

    def _believed(self, seen: Features) -> Belief:
        belief: Belief = self.learner.predict_proba_one(seen, **self._options)
        if not isinstance(belief, Posterior) and not math.isfinite(sum(belief.values())):
            raise ValueError(
                f"{type(self._template).__name__} or its transformers make no finite probabilities "
                "of these features; leave out what is missing, or scale what comes late"
            )
        return belief

    def _check(self, y: Label) -> None:
        check_label(y)
        if y not in (False, True) and not self._template._multiclass:
            raise ValueError(
                f"{type(self._template).__name__} knows the labels False and True only, got {y!r}; "
                "wrap it in river.multiclass.OneVsRestClassifier"
            )

    def _note(self, y: Label) -> None:
        self._labels[y] = None

    def _prime(self, learner: Any, state: State | None) -> None:
        learner.load_state(state)
        # An ensemble meets classes with their examples; one that has none any more is new to it.
        if hasattr(learner, "know"):
            learner.know(self._labels)

    @property
    def _relabels(self) -> bool:
        return self._is_own
