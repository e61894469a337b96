"""What became of the first answers of one annotator, judged by the truth and by the learner."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from streamgp.trust import ErrorRate

if TYPE_CHECKING:
    from streamgp.base import State


@dataclass(slots=True)
class FirstAnswers:
    """Counts over the first answers of one annotator that the learner made an example of.

    A first answer is one to a label request, or a label that nobody asked for; answers to
    challenges and corrections are none. It counts once it has come to something: learned as it is,
    or upheld, revised or kept after a challenge.

    Attributes
    ----------
    n_answers
        First answers.
    sum_wrong
        How much the learner counts as wrong of them, in all.
    n_judged
        Those of events whose truth is known.
    n_wrong
        Those judged that were wrong.
    n_contested
        Those judged that were challenged.
    n_justified
        Those judged that were wrong and challenged.

    Examples
    --------
    >>> ann = FirstAnswers()
    >>> ann.note(0.1, is_wrong=False, contested=False)
    >>> ann.note(1.0, is_wrong=True, contested=True)
    >>> ann.error_rate, round(ann.estimate, 3)
    (0.5, 0.3)

    """

    n_answers: int = 0
    sum_wrong: float = 0.0
    n_judged: int = 0
    n_wrong: int = 0
    n_contested: int = 0
    n_justified: int = 0

    def note(self, probability_wrong: float, *, is_wrong: bool | None, contested: bool) -> None:
        """Count an answer.

        Parameters
        ----------
        probability_wrong
            How much it counts as wrong for the learner, as the consensus log says.
        is_wrong
            Whether it was wrong; None if nobody knows.
        contested
            Whether it was challenged.

        """
        self.n_answers += 1
        self.sum_wrong += probability_wrong
        if is_wrong is not None:
            self.n_judged += 1
            self.n_wrong += is_wrong
            self.n_contested += contested
            self.n_justified += is_wrong and contested

    def note_challenge(self, *, is_wrong: bool) -> None:
        """Count that an answer counted and judged before was challenged after all."""
        self.n_contested += 1
        self.n_justified += is_wrong

    def remove(self, part: FirstAnswers) -> None:
        """Take out answers that were counted here and in `part`."""
        for name, n in asdict(part).items():
            setattr(self, name, getattr(self, name) - n)
        # Rounding must not leave less than nothing.
        self.sum_wrong = max(0.0, self.sum_wrong)

    @property
    def error_rate(self) -> float | None:
        """Share of wrong answers among those whose truth is known; None without any."""
        return self.n_wrong / self.n_judged if self.n_judged else None

    @property
    def estimate(self) -> float:
        """The learner's estimate of that share, without the truth."""
        return ErrorRate(self.n_answers, self.sum_wrong).estimate

    def summary(self) -> dict[str, Any]:
        """Return counts and rates as plain JSON values, in a fixed order."""
        names = ("n_answers", "n_wrong", "error_rate", "estimate")
        return {name: getattr(self, name) for name in names}

    def state(self) -> State:
        """Return the counts."""
        return asdict(self)
