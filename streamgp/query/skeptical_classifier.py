"""The outermost wrapper around a classifier: it asks for labels, and doubts them.

What it shares with the regressor's is in `skeptical_base.py`. The conversation itself, with
requests that wait for answers, is in `streamgp.interactive`.

"""

from __future__ import annotations

import copy
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
from river import base
from river.active.base import ActiveLearningClassifier

from streamgp.base import (
    Belief,
    Budget,
    Decision,
    FeatureName,
    Features,
    Label,
    LearnerFailedError,
    PendingQuestion,
    Posterior,
    Rescale,
    SettledAnswer,
)
from streamgp.common.annotator_em import sharpened, wrong_of_two
from streamgp.common.annotator_error import ErrorRate, Reliability
from streamgp.common.recalibration import CalibrationSlope
from streamgp.learners.river_adapters import (
    UnpackableProbabilities,
    as_classifier,
    split,
)
from streamgp.query import criteria
from streamgp.query.annotator_evidence import AnnotatorJudge
from streamgp.query.drift_test import DriftTest, RunningDriftTest
from streamgp.query.example_store import ClassExampleStore
from streamgp.query.registry import classes_only_for
from streamgp.query.retrospective import RecentEventChooser, RecentEventsAsk, Review
from streamgp.query.skeptical_base import (
    Skeptical,
    as_decision,
    check_experts,
    check_hears,
    check_not,
    check_reservoir,
    check_review,
    check_streams,
    scaling_for,
    seeded,
)
from streamgp.query.strategies import (
    AskRule,
    ChallengeRule,
    LearningAskRule,
    SkepticalAsk,
    SkepticalChallenge,
    check_decides,
)
from streamgp.query.temporal import FilteredStream, TemporalFilter

if TYPE_CHECKING:
    from river.compose import Pipeline

__all__ = [
    "SkepticalClassifier",
]


class SkepticalClassifier(Skeptical[Belief, ErrorRate], ActiveLearningClassifier):
    """Any River classifier, made to ask for labels when unsure and to challenge suspicious ones.

    Under River's `evaluate.progressive_val_score` it is an active learner: it learns only what it
    asks for, and a wrong label passed as `annotation` is challenged against the true one. Inside
    `InteractiveLoop` it holds a conversation. `predict_proba_one` returns probabilities, which
    River's evaluators can unpack into the pair that they expect.

    The wrapper owns the scaling: numbers are standardised by the first `warm_up` events (asked
    about or not). If `model` is a pipeline, its transformers learn from those events instead, and
    are then frozen. Whenever the statistics in use change, the learner is rebuilt from the raw
    labelled examples, which are kept. It is also rebuilt when an example is revised and the learner
    does not retain all of them, because of `max_points`, a `window` or drift detection.

    The default rules rely on the learner to know when it does not know. A learner that is always
    sure of itself, such as naive Bayes, may stop asking before it has seen all classes, or with one
    example of a class, by which it recognises no other event (docs/limits.md). Let it ask at random
    as well, with `query=SkepticalAsk(at_least=0.1)`, or at a rate, with
    `query=Entropy(threshold=0.0)` and `budget=RateBudget(0.1)`.

    Parameters
    ----------
    model
        A classifier, or a pipeline that ends in one. It serves as a template and stays unlearned.
        Transformers should bring numbers to unit scale if a `GPClassifier` without a kernel of
        its own follows. A classifier for two classes only needs `river.multiclass` around it.
    query
        When to ask for a label: a rule of `streamgp.query`. None stands for `SkepticalAsk()`.
    challenge
        When to challenge a label. None stands for `SkepticalChallenge()`.
    budget
        How many label requests are allowed. None stands for `Unlimited()`.
    warm_up
        Number of events from which scaling is learned; 0 leaves the features as they are.
    review
        When to doubt a label that was learned before, in `InteractiveLoop`; None for never.
    reservoir
        When to ask about an earlier event, and which, in `InteractiveLoop`; None for never. It has
        no effect under River's evaluators, which never go back.
    temporal
        A filter that carries beliefs from event to event, for streams of events that follow each
        other in time; None for none. Predictions and probabilities come from it. What is asked,
        challenged and suggested is decided by the learner's belief about the event alone.
    drift_test
        A test for concept drift, which asks about a few more events and makes the learner forget
        what is outdated; None for none. It needs no drift detection in the learner.
    rescale
        Whether numbers are also clipped at 3 standard deviations, and their scale is renewed after
        2, 4, 8, ... times `warm_up` events, as in `isgp()`; with "recent", after every
        `warm_up` events by the latest measurements, for sensors that drift. At each renewal they
        are also weighed by what they tell about the labels (docs/scaling.md). Not for pipelines,
        which do their own scaling.
    seed
        Seed of the random decisions, and of what draws random numbers in `model` and has no seed.
        None draws one for the decisions.

    Attributes
    ----------
    learner
        The classifier in use.
    n_learned
        Number of labelled examples on record.
    temporal_in_use
        The temporal filter in use, None for none.
    n_drifts
        Number of drifts that the test has found.
    n_outdated
        Number of labelled examples on record, the earliest, that the last drift has made outdated.
    feature_weights
        Weight of each number by what it tells about the labels, the largest first.
    feature_forms
        What numbers count as other than themselves: names, ranks, or where they are missing.

    Examples
    --------
    >>> from river import evaluate, metrics
    >>> from streamgp import GPClassifier, SkepticalClassifier, datasets
    >>> model = SkepticalClassifier(GPClassifier(), seed=1)
    >>> evaluate.progressive_val_score(datasets.WiFiRooms().take(300), model, metrics.Accuracy())
    Accuracy: 1...

    References
    ----------
    [^1]: Bontempelli, A., Teso, S., Giunchiglia, F. and Passerini, A., 2020. Learning in the wild
        with incremental skeptical Gaussian processes. IJCAI, Alg. 1.

    """

    # _chooser      chooses among the latest events, None if off
    # _rule_learns  whether the query strategy learns from the answers
    # _stream       the temporal filter in use, None for none
    # _drift        the drift test in use, None for none
    # _outcomes     of challenges, which correct P(wrong)
    _error_estimate_type = ErrorRate
    _store: ClassExampleStore

    def __init__(
        self,
        model: base.Classifier | Pipeline,
        query: AskRule | None = None,
        challenge: ChallengeRule | None = None,
        budget: Budget | None = None,
        *,
        warm_up: int = 200,
        review: Review | None = None,
        reservoir: RecentEventsAsk | None = None,
        temporal: TemporalFilter | None = None,
        drift_test: DriftTest | None = None,
        rescale: Rescale = False,
        seed: int | None = None,
    ) -> None:
        transformers, learner = split(seeded(model, seed), as_classifier)
        check_decides("query", query, "draw", not_taking="given")
        check_decides("challenge", challenge, "given")
        check_streams(query)
        check_hears(query)
        check_experts(query, learner)
        check_not(
            "challenge",
            challenge,
            classes_only_for("challenge", "number"),
            "numbers",
            instead="SkepticalChallenge, PaperChallenge, AlwaysChallenge or NeverChallenge",
        )
        self.model = model
        self.query = query
        self.challenge = challenge
        self.budget = budget
        self.warm_up = warm_up
        check_review(review, learner)
        check_reservoir(reservoir, learner)
        self.review = self._review = review
        self.reservoir = reservoir
        self._chooser = None if reservoir is None else RecentEventChooser(reservoir)
        if not (temporal is None or isinstance(temporal, TemporalFilter)):
            raise TypeError(f"temporal must be a TemporalFilter or None, got {temporal!r}")
        if not (drift_test is None or isinstance(drift_test, DriftTest)):
            raise TypeError(f"drift_test must be a DriftTest or None, got {drift_test!r}")
        self.temporal = temporal
        self.drift_test = drift_test
        self.rescale = rescale
        self._stream = None if temporal is None else FilteredStream(temporal)
        self._drift = None if drift_test is None else RunningDriftTest(drift_test)
        self.seed = seed
        self._set_up()
        scaling = scaling_for(transformers, learner, warm_up, rescale=rescale)
        self._store = ClassExampleStore(learner, scaling)
        # A rule that learns is a template, like the budget and the model.
        self._rule_learns = isinstance(query, LearningAskRule)
        rule = copy.deepcopy(query) if self._rule_learns else query
        self._query_rule = SkepticalAsk() if rule is None else rule
        self._challenge_rule = SkepticalChallenge() if challenge is None else challenge
        skeptical = challenge if isinstance(challenge, SkepticalChallenge) else SkepticalChallenge()
        # Its threshold stays as it is: the correction changes nothing of what is challenged.
        self._outcomes = CalibrationSlope(skeptical.threshold)

    @property
    def _wrapped_model(self) -> base.Classifier:
        return self.model  # type: ignore[no-any-return]

    @property
    def temporal_in_use(self) -> TemporalFilter | None:
        """The temporal filter in use, None for none; `temporal` is its template."""
        return None if self._stream is None else self._stream.filter

    @property
    def n_drifts(self) -> int:
        """Number of drifts that the test has found."""
        return 0 if self._drift is None else self._drift.n_drifts

    @property
    def n_outdated(self) -> int:
        """Number of labelled examples on record that the last drift has made outdated."""
        return self._store.n_outdated

    @property
    def feature_weights(self) -> dict[FeatureName, float]:
        """Weight of each number by what it tells about the labels, the largest first.

        The mean of the squares is 1. Empty until the first renewal of the scaling with enough
        labels, and without `rescale`.
        """
        weights = self._store.scaling.weights
        return dict(sorted(weights.items(), key=lambda item: -item[1]))

    @property
    def feature_forms(self) -> dict[FeatureName, list[str]]:
        """What numbers count as other than themselves, as labels showed that it tells more.

        `"name"`: any two values differ alike; `"ranks"`: by their order; `"missing"`: where one is
        missing, it counts as very small or very large. Empty without `rescale`.
        """
        return {name: list(forms) for name, forms in self._store.scaling.forms.items()}

    # --- predicting and asking

    @overload  # type: ignore[override]
    def predict_proba_one(
        self, x: Features, *, with_dist: Literal[False] = False, **_: Any
    ) -> dict[Label, float]: ...
    @overload
    def predict_proba_one(
        self, x: Features, *, with_dist: Literal[True], **_: Any
    ) -> Posterior: ...

    def predict_proba_one(
        self, x: Features, *, with_dist: bool = False, **_: Any
    ) -> dict[Label, float] | Posterior:
        """Probability of each known class, `{}` before the first label; changes nothing.

        With a temporal filter these are the probabilities of the event observed last, if `x` are
        its features, and otherwise of an event that would come next.

        River's evaluator unpacks what an active learner returns, `proba, ask = ...`. When that is
        done, and only then, the event is counted and asked about as by `predict_one`.

        Parameters
        ----------
        x
            Features, as received: they are scaled here.
        with_dist
            Return what the learner believes about the event, without a temporal filter: the
            posterior means and their variance.

        Raises
        ------
        TypeError
            With `with_dist`, if the learner is no Gaussian process, and has only probabilities.

        """
        if with_dist:
            belief = self._store.belief(x)
            if not isinstance(belief, Posterior):
                raise TypeError(
                    f"{type(self.model).__name__} predicts probabilities without a distribution; "
                    "take a Gaussian process, such as GPClassifier, or leave out with_dist"
                )
            return belief
        return UnpackableProbabilities(self._proba_one(x), partial(self._proba_and_question, x))

    def _proba_one(self, x: Features) -> dict[Label, float]:
        stream = self._stream
        if stream is None:
            return self.own_proba_one(x)
        if stream.is_present(x):
            return stream.filter.probabilities()
        return stream.filter.probabilities_of(self._store.belief(x))

    def _proba_and_question(self, x: Features) -> tuple[dict[Label, float], bool]:
        """Probabilities of a new event, which is counted, and whether to ask for its label."""
        believed, ask = self._meet(x)
        return dict(criteria.probabilities(believed)), ask

    def own_proba_one(self, x: Features) -> dict[Label, float]:
        """Probability of each known class by the learner, without a temporal filter."""
        return dict(criteria.probabilities(self._store.belief(x)))

    def query_one(
        self,
        x: Features,
        *,
        event_id: str | None = None,
        now: float | None = None,
        pending: Sequence[PendingQuestion] = (),
        scores_all: bool = False,
    ) -> Decision:
        """Decide whether to ask for the label of `x`; see `Skeptical.query_one`.

        `pending` holds the open questions about other events, in an order that does not depend on
        when they were asked. If nothing is asked without them, the score may leave them out, unless
        the budget compares scores, or another one does (`scores_all`).

        Warns
        -----
        RuntimeWarning
            If no event was observed, and `x` is not named.

        """
        if event_id is None and not self._n_events:
            warnings.warn(
                "query_one(x) was called before any event was observed: as long as none is, all "
                "have the same random draw, and perhaps none is ever asked about. predict_one(x) "
                "observes an event and says whether to ask; by hand, call observe_one(x) before "
                "query_one(x)",
                RuntimeWarning,
                stacklevel=2,
            )
        belief = self._store.belief(x)
        decision = self._decide(belief, event_id=event_id, now=now)
        if not pending:
            return decision
        # Where the predicted class has a positive score, answers to come only reduce the doubt, so
        # they are left out where they change nothing: they take up to a third of an event's time.
        if (
            not (scores_all or self._budget.compares_scores)
            and decision.score <= decision.threshold
            and max(criteria.scores(belief).values(), default=-1.0) >= 0.0
        ):
            return decision
        belief = self._store.belief_with(x, pending)
        return self._decide(belief, event_id=event_id, now=now)

    def pending_one(self, x: Features) -> float | None:
        """Return the target of a question about `x` asked now, for `PendingQuestion`.

        None if open questions do not count, because the query strategy does not use them or the
        learner knows no covariances. Changes nothing.
        """
        rule = self._query_rule
        if not (isinstance(rule, SkepticalAsk) and rule.pending and self._store.counts_pending):
            return None
        belief = self._store.belief(x)
        return criteria.unexplained_share(belief) if isinstance(belief, Posterior) else None

    def observe_one(self, x: Features) -> None:
        """Observe an event, once each, before predicting it; see `Skeptical.observe_one`."""
        belief = self._store.observe(x)
        self._n_events += 1
        if self._stream is None:
            return
        if belief is None:
            try:
                belief = self._store.belief(x)
            except (ValueError, TypeError):
                return  # the new statistics make it unusable, and the prediction refuses it
        self._stream.observe(x, belief)

    def note_query(
        self, decision: Decision, *, asked: bool, now: float, event_id: str | None = None
    ) -> None:
        """Tell the budget, once for each event, whether it was asked about.

        `event_id` is the id of the event observed last, if its label is awaited.
        """
        Skeptical.note_query(self, decision, asked=asked, now=now)
        if event_id is not None and self._stream is not None:
            self._stream.filter.await_label(event_id)

    def note_unanswered(
        self, now: float, *, asked_at: float | None = None, event_id: str | None = None
    ) -> None:
        """Tell the budget that a label request ended without an answer, and when it was made.

        `event_id` is the id of the event.
        """
        super().note_unanswered(now, asked_at=asked_at)
        if self._stream is not None and event_id is not None:
            self._stream.filter.give_up(event_id)

    def predict_one(self, x: Features, **_: Any) -> tuple[Label | None, bool]:  # type: ignore[override]
        """Predict the label of a new event and say whether to ask for it.

        Unlike `query_one` this counts: the event enters the scaling statistics and the budget.

        Returns
        -------
        The predicted label, None before the first one, and whether a label is asked for.

        """
        believed, ask = self._meet(x)
        return criteria.predicted(believed), ask

    def _meet(self, x: Features) -> tuple[Belief, bool]:
        """Count a new event; return the belief about it, and whether to ask for its label."""
        self.observe_one(x)
        belief = self._store.belief(x)
        decision = self._decide(belief, event_id=None, now=None)
        self.note_query(decision, asked=decision.ask, now=self._n_events)
        believed = belief if self._stream is None else self._stream.filter.probabilities()
        return believed, decision.ask

    # --- whom to believe

    def estimate_annotators(self) -> dict[str | None, Reliability]:
        """Estimate error rate and insistence of each annotator from all answers; changes nothing.

        By the method of `streamgp.common.annotator_em.estimate_mean`, from the latest 2000 answers
        on record: each is judged by the learner's belief about its event given all others.
        Challenges depend on `error_rate` instead, which is more cautious
        (docs/annotators-measured.md).

        Examples
        --------
        >>> from streamgp import GPClassifier, SkepticalClassifier
        >>> model = SkepticalClassifier(GPClassifier(), seed=1)
        >>> for n in range(60):
        ...     model.learn_one({"light": n % 10}, "day" if n % 10 > 4 else "night")
        >>> model.estimate_annotators()[None].error_rate, model.error_rate()
        (0.0..., 0.0...)

        """
        return self.annotator_judge().reliability()

    def annotator_judge(self) -> AnnotatorJudge:
        """Return the judge of annotators by the answers learned so far.

        Its `evidence_against` tells whether an annotator misleads, `contradiction_without` how far
        the others contradict each other without one, and `n_answers` on how many answers it rests.
        """
        return AnnotatorJudge(self._store, self.annotators())

    # --- doubting and learning

    def learn_one(
        self, x: Features, y: Label, annotation: Label | None = None, **options: Any
    ) -> None:
        """Learn a label as River's evaluator hands it over; see `Skeptical.learn_one`."""
        # Before the event is observed: a refused label must leave everything unchanged.
        self._store.check_class(y if annotation is None else annotation)
        super().learn_one(x, y, annotation, **options)

    def challenge_one(
        self,
        x: Features,
        y: Label,
        *,
        annotator: str | None = None,
        event_id: str | None = None,
        privileged: Features | None = None,
    ) -> Decision:
        """Decide whether to challenge the label `y` that was given for `x`; changes nothing.

        A label that equals the prediction is never challenged, however weak both are: there is
        nothing else to suggest. The decision then names `agreement` as what refused. A label whose
        privileged features cannot be used is not challenged either, as it cannot be learned; the
        decision then names `privileged`.

        Parameters
        ----------
        x, y
            Features and the label.
        annotator
            The annotator.
        event_id
            Id of the event, to which a random draw belongs.
        privileged
            What else is known of the answer; None if nothing is.

        Raises
        ------
        MixedLabelsError
            If the label equals a known class of another type, as True and 1 do.

        """
        self._store.check_class(y)
        belief, draw = self._store.belief(x), self._draw(event_id, "challenge")
        try:
            rate = self._error_rate_of(annotator, privileged)
        except (TypeError, ValueError):
            decision = self._doubt(belief, y, annotator, self.error_rate(annotator), draw)
            return decision.refused_by("privileged")
        decision = self._doubt(belief, y, annotator, rate, draw)
        agrees = decision.ask and criteria.predicted(belief) in (y, None)
        return decision.refused_by("agreement") if agrees else decision

    def probability_wrong_one(
        self,
        x: Features,
        y: Label,
        *,
        annotator: str | None = None,
        privileged: Features | None = None,
    ) -> float:
        """Probability that the label `y`, given by this annotator for `x`, is wrong.

        If `privileged`, what else is known of the answer, tells how noisy it is, that counts. Above
        the threshold of the challenges it is corrected by what came of them so far
        (`CalibrationSlope`).
        """
        return self._outcomes.corrected(self._uncorrected(x, y, annotator, privileged))

    def settle_one(
        self,
        x: Features,
        y: Label,
        *,
        given: Label,
        challenged: bool,
        annotator: str | None = None,
        event_id: str | None = None,
        asked: bool = True,
        privileged: Features | None = None,
        given_privileged: Features | None = None,
        n_since: int | None = None,
        answer: SettledAnswer | None = None,
    ) -> float:
        """Learn the label with which a conversation has ended.

        Parameters
        ----------
        x
            Features.
        y
            The final label.
        given
            What the annotator said first.
        challenged
            Whether the annotator was asked to reconsider.
        annotator
            The annotator.
        event_id
            Id of the event, to relabel or forget it later.
        asked
            Whether the label was asked for; a rule that learns is told of no other.
        privileged
            What else is known of the final answer, for a learner that takes it; None if nothing is.
        given_privileged
            What else is known of the first answer, if that differs; ignored if no learner can use
            it.
        n_since
            Number of events observed after it, for a temporal filter. If None, it is not known: the
            label is then about the last event, if that has the same features.
        answer
            What to keep on record of the first answer, if a log tells more about it: `y` may be a
            later correction. None for what the other arguments say.

        Returns
        -------
        How much the first answer counts as wrong in the error estimate of the annotator: the
        probability that it was; after a challenge 1 if it was changed and 0 if not.

        Raises
        ------
        NotPositiveDefiniteError
            If a Gaussian process cannot take the example. Nothing is learned then.
        TypeError
            If the label is missing, or the learner cannot use the privileged features.
        ValueError
            If the event was already learned.

        """
        self._store.check_class(given)
        if given_privileged is None:
            wrong = self._uncorrected(x, given, annotator, privileged)
        else:
            wrong = self._judged(x, given, annotator, given_privileged)
        w = float(y != given) if challenged else wrong
        belief = self._store.belief(x) if self._rule_learns or self._drift is not None else {}
        rate = self.error_rate(annotator)
        if answer is None:
            answer = SettledAnswer.settled(
                given, y, annotator, challenged=challenged, was_asked=asked
            )
        self._store.teach(x, y, event_id, privileged=privileged, answer=answer)
        if challenged:
            self._outcomes.note(wrong, y != given)
        if self._rule_learns and asked:
            self._hear(belief, y)
        if self._stream is not None:
            self._stream.label(
                x,
                y,
                error_rate=rate,
                reconsidered=challenged,
                event_id=event_id,
                n_since=n_since,
            )
        self._error_estimate_to_update(annotator).note(w)
        if self._drift is not None:
            n_current = self._drift.learn(
                belief,
                y,
                annotator=annotator,
                asked=asked,
                error_rate=rate,
                reconsidered=challenged,
            )
            if n_current is not None:
                self._store.outdate(n_current)
        return w

    def relabel_one(
        self,
        event_id: str,
        y: Label,
        *,
        annotator: str | None = None,
        privileged: Features | None = None,
    ) -> None:
        """Change the label of an example; raises KeyError if it was not learned.

        Parameters
        ----------
        event_id
            The event.
        y
            The new label.
        annotator
            Who has corrected the label; None if that is not known, or if it was not corrected.
        privileged
            What else is known of the new answer; None to keep what was known of the old one.

        """
        self._store.relabel(event_id, y, annotator=annotator, privileged=privileged)

    def forget_one(self, event_id: str) -> None:
        """Forget an example; raises KeyError if it was not learned."""
        n_latest = self._store.n_latest(event_id)
        super().forget_one(event_id)
        if self._drift is not None:
            self._drift.forget(n_latest)

    # --- weighing second answers; needs `InteractiveLoop`, which asks for them

    def draw_one(self, event_id: str, purpose: str) -> float:
        """Return the number in [0, 1) that is drawn for an event and a purpose; changes nothing."""
        return self._draw(event_id, purpose)

    def aggregate_one(
        self,
        event_id: str,
        given: Label,
        y: Label,
        *,
        given_by: str | None = None,
        annotator: str | None = None,
    ) -> Label:
        """Return which of two answers about a learned event stands; changes nothing.

        It is the one with the larger posterior, after Dawid and Skene, with the same confusion
        between all K classes: for a label k

            q_k · ((1 - e) if k is `given`, else e / (K - 1)) · ((1 - e') if k is `y`, else
            e' / (K - 1))

        with the error rates e of `given_by` and e' of `annotator` as in `error_rate`, and the
        learner's belief about the event without its label as q, or with all labels if it cannot
        leave one out. Beliefs are weak evidence: `q_k = (1 - v) share + v / K` with the part v that
        is open, as in P(wrong), and .001 of it spread over all labels. So `y` stands if

            q_y (1 - e') / e' > q_given (1 - e) / e

        and `given` if not, and if both are the same. No label other than these two is considered: a
        learner overrules one annotator by the word of another, but not both. Two answers of one
        annotator are weighed in the same way.

        Parameters
        ----------
        event_id
            The event, which was learned.
        given, given_by
            The label that stood, and its annotator.
        y, annotator
            The answer to a second question, and its annotator.

        Raises
        ------
        KeyError
            If the event was not learned.
        ValueError
            If a label equals a known class of another type, as True and 1 do.

        Examples
        --------
        >>> from streamgp import isgp
        >>> model = isgp(seed=1)
        >>> for n, y in enumerate(["hall", "den"] * 5):
        ...     model.learn_one({"wap1": -40.0 - 30.0 * (n % 2)}, y, event_id=f"e{n}")
        >>> model.learn_one({"wap1": -40.0}, "den", event_id="wrong")
        >>> model.aggregate_one("wrong", "den", "hall", given_by="ann", annotator="bob")
        'hall'
        >>> model.aggregate_one("e0", "hall", "den", given_by="ann", annotator="bob")
        'hall'

        """
        self._store.check_class(y)
        if y == given:
            return given
        q_given, q_y = self._believed_of(event_id, (given, y))
        e, e_second = self.error_rate(given_by), self.error_rate(annotator)
        # Multiplied out: both rates are above 0 and below 1.
        return y if q_y * (1.0 - e_second) * e > q_given * (1.0 - e) * e_second else given

    def note_second(
        self,
        event_id: str,
        y: Label,
        *,
        annotator: str | None = None,
        probability_wrong: float | None = None,
    ) -> None:
        """Record the answer of another annotator to a second question about a learned event.

        It is evidence on both answers: the estimate of that annotator counts the second one as
        wrong with its probability by `streamgp.common.annotator_em.wrong_of_two`, and from now on
        the first answer counts as wrong with its own.

        Parameters
        ----------
        event_id
            The event, which was learned.
        y, annotator
            The answer, and its annotator.
        probability_wrong
            How much the first answer has counted as wrong so far. If None, that is not known, and
            the first answer goes on counting as before.

        """
        store = self._store
        first = store.answer_about(event_id) or SettledAnswer(y=None)
        second = SettledAnswer(y=y, annotator=annotator)
        label = first.y
        if label is not None:
            labels = store.labels_with(label, y)
            shares = criteria.shares(store.belief_about(event_id), labels)
            rates = self.error_rate(first.annotator), self.error_rate(annotator)
            w, w_second = wrong_of_two(first, second, rates, shares, labels)
            if probability_wrong is not None:
                self._error_estimate_to_update(first.annotator).correct(probability_wrong, w)
            self._error_estimate_to_update(annotator).note(w_second)
        store.note_second(event_id, second)

    # --- asking about earlier events

    @property
    def reservoir_due(self) -> bool:
        """Whether it is time to review the latest events."""
        return self._chooser is not None and self._chooser.is_due(self._n_events)

    def ask_among_one(
        self, candidates: Mapping[str, Features], *, now: float
    ) -> tuple[str, Decision] | None:
        """Return the most informative event and whether to ask about it; changes nothing.

        Parameters
        ----------
        candidates
            Features of the events that may be asked about, by event id.
        now
            Time for the budget of these questions, in seconds.

        Returns
        -------
        The event id and the decision, or None if there is no event.

        """
        chooser = self._chooser
        event_ids, belief = self._store.joint(candidates)
        if chooser is None or belief is None:
            return None
        lots = partial(self._draw, purpose="reservoir")
        return chooser.choose(event_ids, belief, lots, now)

    def note_reservoir(self, decision: Decision | None, *, now: float) -> None:
        """Record a review of the latest events, once each, and the request it led to.

        `decision` is None if no event could be asked about.
        """
        if self._chooser is not None:
            self._chooser.note(decision, self._n_events, now)

    def note_reservoir_unanswered(self, now: float, *, asked_at: float) -> None:
        """Refund the budget: the request about an earlier event expired unanswered."""
        if self._chooser is not None:
            self._chooser.note_unanswered(now, asked_at)

    # --- surviving a restart

    def _configuration(self) -> list[object]:
        # Omitted when unset, so that older snapshots stay valid.
        rules = (self.reservoir, self.temporal, self.drift_test)
        rescale = ["rescale" if self.rescale is True else self.rescale] if self.rescale else []
        return [*super()._configuration(), *(rule for rule in rules if rule is not None), *rescale]

    # --- inside

    def _parts(self) -> dict[str, Any]:
        parts = {
            "reservoir": self._chooser,
            "query": self._query_rule if self._rule_learns else None,
            "temporal": self._stream,
            "drift": self._drift,
            "outcomes": self._outcomes,
        }
        set_parts = {name: part for name, part in parts.items() if part is not None}
        return {**super()._parts(), **set_parts}

    def _apply_query_rule(self, belief: Belief, draw: float) -> Decision:
        wish = super()._apply_query_rule(belief, draw)
        if self._drift is None:
            return wish
        return self._drift.decided(belief, wish, draw, self._n_events)

    def _hear(self, belief: Belief, y: Label) -> None:
        """Tell the query strategy the label of an event that it has asked about."""
        try:
            self._query_rule.hear(belief, y)
        except (ValueError, TypeError) as error:  # the example has been learned already
            raise LearnerFailedError(
                f"{type(self._query_rule).__name__}.hear cannot use a label: {error}"
            ) from error

    def _believed_of(self, event_id: str, labels: Sequence[Label]) -> list[float]:
        """Return the belief in labels of a learned event, without its own label if possible."""
        known = self._store.labels_with(*labels)
        shares = criteria.shares(self._store.belief_about(event_id), known)
        q = sharpened(np.array([shares]), 1.0)[0]
        return [float(q[known.index(label)]) for label in labels]

    def _error_rate_of(self, annotator: str | None, privileged: Features | None) -> float:
        """Estimate how probably this answer is wrong, before its label is considered."""
        noise, rate = self._store.noise(privileged), self.error_rate(annotator)
        return rate if noise is None else criteria.error_rate_with_noise(rate, *noise)

    def _judged(self, x: Features, y: Label, annotator: str | None, privileged: Features) -> float:
        """Judge an answer with its privileged features, if these can be used."""
        try:
            return self._uncorrected(x, y, annotator, privileged)
        except (TypeError, ValueError):
            return self._uncorrected(x, y, annotator, None)

    def _uncorrected(
        self, x: Features, y: Label, annotator: str | None, privileged: Features | None
    ) -> float:
        """Return P(wrong) before it is corrected, as it counts in the error estimate."""
        rate = self._error_rate_of(annotator, privileged)
        return self._probability_wrong(self._store.belief(x), y, rate)

    def _probability_wrong(self, belief: Belief, y: Label, rate: float) -> float:
        """Return the probability that a label is wrong, by an annotator with this error rate."""
        rule, heard = self._challenge_rule, None
        is_new = y not in criteria.scores(belief)
        if is_new and isinstance(rule, SkepticalChallenge) and rule.doubts_new:
            heard = Counter(example.y for example in self._store.examples())
        return criteria.probability_wrong(belief, y, rate, heard=heard)

    def _wrong_by_others(
        self,
        annotators: Mapping[str, str | None],
        stds: Mapping[str, float],  # noqa: ARG002 - of numbers
    ) -> Callable[[str, Belief, Label], float]:
        def wrong(event_id: str, belief: Belief, y: Label) -> float:
            return self._probability_wrong(belief, y, self.error_rate(annotators[event_id]))

        return wrong

    def _doubt(
        self,
        belief: Belief,
        y: Label,
        annotator: str | None,  # noqa: ARG002 - for a subclass with another idea of reliability
        rate: float,
        draw: float,
    ) -> Decision:
        """Decide whether to challenge a label, if it is not the predicted one."""
        wrong = self._outcomes.corrected(self._probability_wrong(belief, y, rate))
        rule = self._challenge_rule
        return as_decision(rule, rule.decide(belief, y, probability_wrong=wrong, draw=draw))

    def _ask_for_label(self, x: Any, y_pred: Any) -> bool:  # noqa: ARG002 - River's hook
        return self.query_one(x).ask

    @classmethod
    def _unit_test_params(cls) -> Any:
        from river.naive_bayes import GaussianNB

        yield {"model": GaussianNB(), "seed": 1}  # type: ignore[no-untyped-call]
