"""Skeptical learning in three stages, as before Gaussian processes.

Whom to believe depends on how confident the classifier is, and on the stage that it has reached.

"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

from river import base

from streamgp import OnlineForestClassifier, SkepticalClassifier
from streamgp.base import Belief, Budget, Decision, Example, Features, Label, State
from streamgp.common.validation import check_rate
from streamgp.query import criteria

STAGES = ("train", "refine", "regime")
# The paper on skeptical Gaussian processes also makes it ask for at least ten labels.
_WINDOW = 10


class StagedSkepticalClassifier(SkepticalClassifier):
    """Always asks, then asks and challenges, then asks only when unsure.

    Its *confidence* in a prediction is the largest probability, times `n / (n + 1)` for `n` labels
    learned; the *reliability* of an annotator is `(1 + kept) / (2 + challenged)`, where `kept` of
    the `challenged` answers were not changed. Other answers are no evidence: a mistake in them
    would not show. With the mean confidence of the last ten predictions whose label became known:

    * `train`: always asks, never challenges. Ends when that mean exceeds `theta` times the
    reliability of the annotator who answered last: the classifier is about as credible.
    * `refine`: always asks, and challenges a label when the confidence in another one exceeds the
    reliability. Ends when the mean exceeds `theta`.
    * `regime`: asks when the confidence is below `theta`, and challenges as before.

    A stage never comes back. A classifier that is sure of what it has never seen stops asking too
    early, which is why skeptical Gaussian processes (`isgp`) were made; this class is for
    comparison.

    Parameters
    ----------
    model
        A classifier, or a pipeline that ends in one: see `SkepticalClassifier`.
    theta
        Confidence that ends the stages; the larger, the longer they last and the more is asked.
    budget
        How many label requests are allowed. None stands for `Unlimited()`.
    warm_up
        Number of events from which scaling is learned; 0 leaves the features as they are, which
        makes no difference to trees.
    seed
        Seed of the conversation. None draws one; no decision is random.

    Attributes
    ----------
    stage
        One of `train`, `refine` and `regime`.

    Examples
    --------
    >>> from river.naive_bayes import GaussianNB
    >>> model = StagedSkepticalClassifier(GaussianNB(), theta=0.8, seed=1)
    >>> for light in range(40):
    ...     model.learn_one({"light": light % 10}, "day" if light % 10 > 4 else "night")
    >>> model.stage
    'regime'
    >>> model.query_one({"light": 9.0})
    Decision(ask=False, score=0.0..., threshold=0.2, criterion='staged, regime', budget=None)
    >>> model.challenge_one({"light": 9.0}, "night").ask
    True

    References
    ----------
    [^1]: Zeni, M., Zhang, W., Bignotti, E., Passerini, A. and Giunchiglia, F., 2019. Fixing
        mislabeling by human annotators leveraging conflict resolution and prior knowledge. IMWUT 3.
        What it leaves open is taken from the account in the paper on ISGP.

    """

    # _recent     confidences in the last predictions whose label became known
    # _contested  by annotator, how many answers were kept when challenged, and how many challenged
    def __init__(
        self,
        model: base.Classifier,
        theta: float = 0.6,
        budget: Budget | None = None,
        *,
        warm_up: int = 0,
        seed: int | None = None,
    ) -> None:
        check_rate("theta", theta)
        super().__init__(model, budget=budget, warm_up=warm_up, seed=seed)
        self.theta = theta
        self.stage = STAGES[0]
        self._recent: deque[float] = deque(maxlen=_WINDOW)
        self._contested: dict[str | None, tuple[int, int]] = {}

    def reliability(self, annotator: str | None = None) -> float:
        """Share of an annotator's challenged answers that were kept, smoothed."""
        kept, challenged = self._contested.get(annotator, (0, 0))
        return (1 + kept) / (2 + challenged)

    def confidence_one(self, x: Features) -> float:
        """Confidence in the prediction for an event, 0 before the first label."""
        return self._confidence(self._store.belief(x))

    def settle_one(
        self,
        x: Features,
        y: Label,
        *,
        given: Label,
        challenged: bool,
        annotator: str | None = None,
        event_id: str | None = None,
        privileged: Features | None = None,
        given_privileged: Features | None = None,
        **options: Any,
    ) -> float:
        """Learn the final label of an event, and enter the next stage if it is time.

        See `SkepticalClassifier.settle_one`.
        """
        confidence = self.confidence_one(x)
        w = super().settle_one(
            x,
            y,
            given=given,
            challenged=challenged,
            annotator=annotator,
            event_id=event_id,
            privileged=privileged,
            given_privileged=given_privileged,
            **options,
        )
        if challenged:
            kept, n = self._contested.get(annotator, (0, 0))
            self._contested[annotator] = kept + (y == given), n + 1
        self._recent.append(confidence)
        self._advance(annotator)
        return w

    def state(self) -> State:
        """Return what decisions depend on besides the labelled examples; see `Skeptical.state`."""
        contested = [[name, *counts] for name, counts in self._contested.items()]
        staged = {"stage": self.stage, "recent": [*self._recent], "contested": contested}
        return {**super().state(), "staged": staged}

    def load_state(self, state: State, examples: Sequence[Example]) -> None:
        """Restore `state` and `examples`; see `Skeptical.load_state`."""
        super().load_state(state, examples)
        staged = state["staged"]
        self.stage = str(staged["stage"])
        self._recent.extend(map(float, staged["recent"]))
        self._contested = {name: (int(kept), int(n)) for name, kept, n in staged["contested"]}

    # --- inside

    def pending_one(self, x: Features) -> float | None:  # noqa: ARG002 - none counts
        """Return None: open questions do not count."""
        return None

    def _apply_query_rule(self, belief: Belief, draw: float) -> Decision:  # noqa: ARG002 - no randomness
        if self.stage != "regime":
            return Decision.of(1.0, 0.0, self._criterion)
        return Decision.of(1.0 - self._confidence(belief), 1.0 - self.theta, self._criterion)

    def _doubt(
        self,
        belief: Belief,
        y: Label,  # noqa: ARG002 - one that agrees is never challenged
        annotator: str | None,
        rate: float,  # noqa: ARG002 - the reliability is the error rate
        draw: float,  # noqa: ARG002
    ) -> Decision:
        score = 0.0 if self.stage == "train" else self._confidence(belief)
        return Decision.of(score, self.reliability(annotator), self._criterion)

    @property
    def _criterion(self) -> str:
        return f"staged, {self.stage}"

    def _confidence(self, belief: Belief) -> float:
        n = self.n_learned
        return max(criteria.probabilities(belief).values(), default=0.0) * n / (n + 1)

    def _advance(self, annotator: str | None) -> None:
        if len(self._recent) < _WINDOW:
            return
        mean = sum(self._recent) / _WINDOW
        if self.stage == "train" and mean > self.theta * self.reliability(annotator):
            self.stage = "refine"
        if self.stage == "refine" and mean > self.theta:
            self.stage = "regime"

    def _configuration(self) -> list[object]:
        return [*super()._configuration(), "staged", self.theta]


def online_srf(*, theta: float = 0.6, seed: int | None = None) -> StagedSkepticalClassifier:
    """Return the skeptical random forest, with an online forest.

    It has a hundred trees, as in the papers. As labels are few, they split their leaves early,
    after ten labels; with 300 labels it is then as good as a forest trained on all at once.

    Parameters
    ----------
    theta
        Confidence that ends the stages that always ask; the larger, the more is asked.
    seed
        Seed of the forest. None draws one.

    Examples
    --------
    >>> model = online_srf(seed=1)
    >>> model.observe_one({"light": 0.3})
    >>> model.query_one({"light": 0.3})
    Decision(ask=True, score=1.0, threshold=0.0, criterion='staged, train', budget=None)

    References
    ----------
    [^1]: Zeni, M., Zhang, W., Bignotti, E., Passerini, A. and Giunchiglia, F., 2019. Fixing
        mislabeling by human annotators leveraging conflict resolution and prior knowledge. IMWUT 3.

    """
    learner = OnlineForestClassifier(n_models=100, min_weight=10, seed=seed)
    return StagedSkepticalClassifier(learner, theta, seed=seed)
