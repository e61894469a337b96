"""Who is in quarantine, what becomes of the answers, and that a restart changes nothing of it."""

import itertools
from dataclasses import replace
from functools import cache

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from river.compose import Discard

from streamgp import DriftTest, GPClassifier, SkepticalClassifier, isgp
from streamgp.common.annotator_quarantine import HEAD_START, THRESHOLD
from streamgp.common.counter_rng import uniform
from streamgp.interactive import (
    Answer,
    Cancel,
    Challenge,
    Event,
    InteractiveLoop,
    LabelledExample,
    LabelRequest,
    People,
    Rejected,
    Retraction,
    examples_in,
)
from streamgp.interactive.messages import ASKED_AGAIN, SET_ASIDE
from streamgp.interactive.quarantine import Quarantine, judged
from streamgp.interactive.rollback import FULL_CREDIT
from streamgp.query import AlwaysAsk, LeaveOneOutReview
from streamgp.query.annotator_evidence import AnnotatorJudge
from tests.helpers.laws import examples
from tests.interactive.scripted import JudgingLearner
from tests.interactive.stories import MIXED, Story
from tests.interactive.stories import told as tell
from tests.interactive.test_retract import known_of, rebuilt, words_without

ANN, BOB, EVE = "ann", "bob", "eve"


def event(n):
    return Event(event_id=f"e{n}", x={"f": 0.0}, occurred_at=float(n))


def answer(n, by, y="a", request="label"):
    request_id = f"e{n}/{request}"
    return Answer(
        answer_id=f"{by}/{request_id}",
        event_id=f"e{n}",
        request_id=request_id,
        y=y,
        annotator=by,
        answered_at=float(n),
    )


def loop_with(people=None, *, kind=JudgingLearner, **options):
    learner = kind(proba={"b": 0.6, "a": 0.4}, **options)
    loop = InteractiveLoop(learner, people=people or People())
    for n in range(3):
        loop.on_event(event(n), float(n))
    return loop


def kinds(messages):
    return [m.fault if isinstance(m, Rejected) else type(m).__name__ for m in messages]


def test_answers_in_quarantine_change_nothing_and_leave_the_question_open():
    loop = loop_with()
    refused, *_ = loop.on_answer(answer(0, EVE), 0.0)
    assert (refused.fault, loop.quarantined) == ("quarantined", [EVE])
    assert "annotator 'eve' is in quarantine" in refused.reason
    assert "e0/label" in loop.open_requests()
    assert loop.model.n_learned == 0
    assert kinds(loop.on_answer(answer(0, ANN), 0.0)) == ["LabelledExample"]
    assert kinds(loop.on_answer(answer(1, EVE), 1.0)) == ["quarantined"]
    taken_back = Answer(
        answer_id="x",
        event_id="e0",
        supersedes="ann/e0/label",
        declined=True,
        annotator=EVE,
        answered_at=2.0,
    )
    assert kinds(loop.on_answer(taken_back, 2.0)) == ["quarantined"]


def test_the_annotator_against_whom_most_speaks_is_in_quarantine():
    loop = loop_with()
    loop.model.against = {ANN: 1e7, EVE: 1e9}
    assert kinds(loop.on_answer(answer(0, ANN), 0.0))[0] == "LabelledExample"
    assert loop.quarantined == [EVE]


class ComparingLearner(JudgingLearner):
    """Knows how far the others contradict each other without each."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.left = {ANN: 50.0, BOB: 50.0, EVE: 0.1}
        self.few = ()

    def n_answers(self, annotator):
        return 2 if annotator in self.few else super().n_answers(annotator)

    def contradiction_without(self, annotator, without=()):
        assert annotator not in without
        return self.left[annotator]


def test_of_two_suspects_the_one_without_whom_the_others_agree_is_in_quarantine():
    loop = loop_with(kind=ComparingLearner)
    loop.model.against = {ANN: 1e9, EVE: 1e7}
    loop.on_answer(answer(0, ANN), 0.0)
    assert loop.quarantined == [EVE]
    # Of those who are equal in this, it is the one with the most evidence.
    loop = loop_with(kind=ComparingLearner)
    loop.model.against, loop.model.left = {ANN: 1e9, EVE: 1e7}, dict.fromkeys((ANN, BOB, EVE), 2e4)
    loop.on_answer(answer(0, ANN), 0.0)
    assert loop.quarantined == [ANN]


def quarantined(against, left, few=()):
    """Return who is in quarantine after an answer of ann."""
    loop = loop_with(kind=ComparingLearner)
    loop.model.against, loop.model.left, loop.model.few = against, left, few
    loop.on_answer(answer(0, ANN), 0.0)
    return loop.quarantined


def test_nobody_is_in_quarantine_while_the_evidence_on_who_probably_misleads_is_small():
    left = {ANN: 5000.0, BOB: 5000.0, EVE: 0.1}
    assert quarantined({ANN: 1e9, EVE: THRESHOLD + 1}, left) == [EVE]
    assert quarantined({ANN: 1e9, EVE: HEAD_START + 1}, left) == []


def test_nobody_is_in_quarantine_while_another_one_may_mislead():
    against, left = {ANN: 1e9, BOB: 2.0, EVE: 0.0}, {ANN: 20.0, BOB: 9e3, EVE: 200.0}
    assert quarantined(against, left) == [ANN]
    # Eve, who cannot be judged, or is not suspected.
    for found in (0.0, 2.0):
        assert quarantined(against | {EVE: found}, left | {EVE: 199.0}) == []
        assert quarantined(against | {EVE: found}, left | {EVE: 0.1}) == []
    # One who gives few answers makes nobody else look like a liar, unless suspected.
    assert quarantined(against, left | {EVE: 0.1}, few=[EVE]) == [ANN]
    assert quarantined(against | {EVE: HEAD_START + 1}, left | {EVE: 199.0}, few=[EVE]) == []
    # Without one of two who mislead, the other one is still contradicted.
    assert quarantined(against | {EVE: 1e8}, {ANN: 1e8, BOB: 2e4, EVE: 1e9}) == [ANN]
    assert quarantined(against | {EVE: 1e8}, {ANN: 1e8, BOB: 9e3, EVE: 1e9}) == []


class CampsLearner(ComparingLearner):
    """Knows annotators of several camps, who contradict each other; most of all the first."""

    def __init__(self, camps, within=0.1):
        super().__init__(proba={})
        self.camps, self.within = [camp.split() for camp in camps], within
        self.against = dict.fromkeys(self.annotators(), 1e9)

    def annotators(self):
        return [None, *itertools.chain(*self.camps)]

    def contradiction_without(self, annotator, without=()):
        assert annotator not in without
        told = [camp for camp in self.camps if {*camp} - {annotator, *without}]
        return self.within if len(told) == 1 else 1e9 - self.annotators().index(annotator)


@pytest.mark.parametrize(
    ("camps", "trusted", "named"),
    [
        (["ann bob", "eve hal"], [], ()),
        (["ann bob", "eve hal"], ["ann"], ("hal",)),
        (["eve hal", "ann bob"], ["ann"], ()),
        (["ann bob cyd", "eve hal"], [], ("hal",)),
        (["eve hal ivy", "ann bob"], [], ("bob",)),
        (["ann bob", "eve hal"], ["cyd"], ()),
        (["ann bob", "eve", "hal"], [], ("hal",)),
        (["ann bob", "eve"], [], ("eve",)),
    ],
)
def test_nobody_is_in_quarantine_with_whom_as_many_agree_as_with_others(camps, trusted, named):
    people = People(trusted=frozenset(trusted))
    assert judged(Quarantine(), CampsLearner(camps), BOB, people).names == named


def test_where_two_contradict_two_others_all_have_been_judged_until_there_are_more_answers():
    model = CampsLearner(["ann bob", "eve hal"])
    found = judged(Quarantine(), model, BOB, People())
    assert found.judged == dict.fromkeys(("ann", "bob", "eve", "hal"), 8)
    # One with a few answers does not count.
    model.few = ["ann"]
    assert judged(Quarantine(), model, BOB, People()).names == ("hal",)
    # Those who are in quarantine do not count.
    model = CampsLearner(["ann bob", "eve hal", "joe"])
    found = judged(Quarantine(), model, BOB, People())
    assert found.names == ("joe",)
    assert judged(replace(found, judged={}), model, BOB, People()).names == ("joe",)


def test_pairs_that_tell_nothing_do_not_matter_where_the_others_agree():
    class Undecided(CampsLearner):
        def contradiction_without(self, annotator, without=()):
            if without:
                return HEAD_START + 1
            return self.within if annotator == "hal" else 1e9

    for within, named in ((HEAD_START, ("hal",)), (HEAD_START + 1, ())):
        model = Undecided(["ann bob eve", "hal"], within)
        assert judged(Quarantine(), model, BOB, People()).names == named


def test_two_agree_unless_there_is_more_evidence_than_answers_give_that_tell_nothing():
    named = [
        judged(Quarantine(), CampsLearner(["ann bob", "eve hal"], within), BOB, People()).names
        for within in (HEAD_START + 8, HEAD_START + 8.1)
    ]
    assert named == [(), ("hal",)]


@pytest.mark.parametrize(
    ("camps", "few", "trusted", "named"),
    [
        (["ann bob", "eve hal"], {"eve": 10}, [], ()),
        (["ann bob", "eve hal"], {"eve": 9}, [], ("hal",)),
        (["ann bob", "eve hal"], {"eve": 9}, ["eve"], ()),
        (["ann bob joe", "eve ivy hal"], {"eve": 5, "ivy": 5}, [], ()),
        (["ann bob joe", "eve ivy hal"], {"eve": 5, "ivy": 4}, [], ("hal",)),
    ],
)
def test_those_who_agree_do_not_count_if_all_of_them_have_given_few_answers(
    camps, few, trusted, named
):
    class Uneven(CampsLearner):
        def n_answers(self, annotator):
            return few.get(annotator, 60)

    people = People(trusted=frozenset(trusted))
    assert judged(Quarantine(), Uneven(camps), BOB, people).names == named


def test_an_annotator_who_is_trusted_does_not_stand_in_for_one_who_misleads():
    loop = loop_with(People(trusted=frozenset([ANN])))
    loop.model.against = {ANN: 1e9, EVE: 1e7}
    loop.on_answer(answer(0, EVE), 0.0)
    assert loop.quarantined == [EVE]


def test_open_questions_are_asked_again_of_the_others_once_and_new_ones_exclude_who_misleads():
    loop = loop_with()
    loop.on_answer(answer(2, ANN), 2.0)
    _, *again = loop.on_answer(answer(0, EVE), 2.0)
    assert [m.request_id for m in again] == ["e0/label", "e1/label"]
    assert {(m.reason, m.excluded, m.requested_at) for m in again} == {(ASKED_AGAIN, (EVE,), 2.0)}
    assert [m.occurred_at for m in again] == [0.0, 1.0]
    assert kinds(loop.on_answer(answer(1, EVE), 2.0)) == ["quarantined"]
    _, request = loop.on_event(event(3), 3.0)
    assert (request.excluded, request.reason != ASKED_AGAIN) == ((EVE,), True)
    # What is answered by the input at which one is named is not asked again.
    other = loop_with()
    other.model.against = {ANN: 1e7, EVE: 1e9}
    _, *again = other.on_answer(answer(0, ANN), 2.0)
    assert [m.request_id for m in again] == ["e1/label", "e2/label"]


@pytest.mark.parametrize(
    "people",
    [
        People(quarantine=False),
        People(supervisors=frozenset([EVE])),
        People(trusted=frozenset([EVE])),
    ],
)
def test_some_are_never_in_quarantine(people):
    loop = loop_with(people)
    assert kinds(loop.on_answer(answer(0, EVE), 0.0)) == ["LabelledExample"]
    assert loop.quarantined == []


def test_an_annotator_who_is_trusted_later_is_heard_again():
    loop = loop_with()
    loop.on_answer(answer(0, EVE), 0.0)
    trusting = People(trusted=frozenset([EVE]))
    again = InteractiveLoop.from_parts(
        loop.parts(), [], JudgingLearner(proba={"b": 0.6, "a": 0.4}), people=trusting
    )
    assert again.quarantined == []
    assert kinds(again.on_answer(answer(0, EVE), 0.0)) == ["LabelledExample"]


def test_who_is_no_longer_trusted_is_in_quarantine_again_and_the_next_request_says_so():
    loop = loop_with()
    loop.on_answer(answer(0, EVE), 0.0)
    for trusted, excluded in (([EVE], ()), ([], (EVE,))):
        learner = JudgingLearner(proba={"b": 0.6, "a": 0.4})
        people = People(trusted=frozenset(trusted))
        loop = InteractiveLoop.from_parts(loop.parts(), [], learner, people=people)
        _, request = loop.on_event(event(8 + len(excluded)), 5.0)
        assert request.excluded == excluded
    assert kinds(loop.on_answer(answer(8, EVE), 6.0)) == ["quarantined"]
    assert kinds(loop.on_answer(answer(8, ANN), 6.0)) == ["LabelledExample"]


def test_contested_labels_of_an_annotator_in_quarantine_are_never_learned():
    loop = loop_with(contests=True)
    loop.model.against = {}
    assert kinds(loop.on_answer(answer(0, EVE), 0.0)) == ["Challenge"]
    loop.model.against, loop.model.n = {EVE: 1e9}, 12
    cancel, refused, *_ = loop.on_answer(answer(1, EVE), 1.0)
    assert isinstance(cancel, Cancel)
    assert (cancel.request_id, cancel.why) == ("e0/challenge/1", SET_ASIDE)
    assert refused.fault == "quarantined"
    loop.model.contests = False
    [line] = loop.on_answer(answer(0, ANN), 2.0)
    assert (line.annotator, line.given_by) == (ANN, None)


def test_a_judgement_is_undone_with_the_input_that_fails():
    loop = loop_with()
    loop.model.against = {}
    before = loop.snapshot(with_environment=False)
    loop.model.refuses = lambda _: 1 / 0
    assert kinds(loop.on_answer(answer(0, ANN), 0.0)) == ["failed"]
    loop.model.refuses = False
    loop._moderator.journal.credit = FULL_CREDIT
    assert loop.snapshot(with_environment=False) == before


def test_a_quarantine_outlasts_an_input_that_fails():
    loop = loop_with()
    loop.on_answer(answer(0, EVE), 0.0)
    loop.model.refuses = lambda _: 1 / 0
    assert kinds(loop.on_answer(answer(0, ANN), 0.0)) == ["failed"]
    assert loop.quarantined == [EVE]
    assert kinds(loop.on_answer(answer(1, EVE), 1.0)) == ["quarantined"]


def test_evidence_at_the_threshold_is_not_beyond_it():
    loop = loop_with()
    loop.model.against = {EVE: THRESHOLD}
    assert kinds(loop.on_answer(answer(0, EVE), 0.0)) == ["LabelledExample"]
    assert loop.quarantined == []


def test_annotators_are_judged_ever_more_rarely():
    due = []
    for n in range(200):
        last = due[-1] if due else 0
        if Quarantine(judged={ANN: last} if due else {}).is_due(ANN, n):
            due.append(n)
    assert due[:15] == [5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 18, 20, 22]
    assert due[-3:] == [144, 162, 182]
    assert all(later - n <= max(1, n / 8) for n, later in itertools.pairwise(due))


def test_an_annotator_is_suspected_by_more_evidence_than_before_the_first_answer():
    names = (ANN, BOB, EVE)
    suspected = Quarantine(against={ANN: HEAD_START, BOB: HEAD_START + 1, EVE: 1e4})
    assert [suspected.barred(name, names) for name in names] == [None, (EVE,), ()]
    # One whom nothing speaks against yet has not been judged by anything either.
    unknown = Quarantine(against={ANN: 1e4, BOB: 0.0, EVE: 5.0})
    assert unknown.barred(ANN, names) == (BOB,)
    assert replace(unknown, against={ANN: 1e4, BOB: 0.0}).barred(ANN, names) is None
    assert unknown.barred(ANN, (ANN, EVE)) is None


# --- with a learner that judges


PLACES = ("home", "work", "gym", "cafe")
NAMES = (ANN, BOB, EVE)


def told(n, *, liar=EVE, names=NAMES):
    """Who is asked about the n-th event, and what they say; honest ones err in 10 %."""
    place = int(uniform(1, str(n), "place") * 4)
    x = {
        "north": place // 2 * 4.0 + uniform(1, str(n), "north"),
        "east": place % 2 * 4.0 + uniform(1, str(n), "east"),
    }
    by = names[int(uniform(1, str(n), "who") * len(names))]
    errs = by == liar or uniform(1, str(n), "errs") < 0.1
    y = PLACES[(place + errs) % 4]
    return Event(event_id=f"e{n}", x=x, occurred_at=float(n)), by, y


def play(loop, numbers, *, seconds=True, **who):
    """Let all events be answered, challenges by what was said first; return all messages.

    Second questions are answered if `seconds`.
    """
    messages = []
    for n in numbers:
        given, by, y = told(n, **who)
        messages += loop.on_event(given, float(n))
        unasked = Answer(
            answer_id=f"a{n}", event_id=f"e{n}", y=y, annotator=by, answered_at=float(n)
        )
        said = loop.on_answer(unasked, float(n))
        for challenge in [m for m in said if isinstance(m, Challenge)]:
            said += loop.on_answer(answer(n, by, challenge.given, "challenge/1"), float(n))
        for second in [m for m in said if isinstance(m, LabelRequest) and m.is_second]:
            if seconds and second.event_id == f"e{n}":
                said += loop.on_answer(second_answer(n, second, **who), float(n))
        messages += said
    return messages


def second_answer(n, request, **who):
    """What the next annotator says who may answer a second question."""
    names = [name for name in NAMES if name not in request.excluded]
    _, _, y = told(n, **{**who, "names": names[n % len(names) :][:1]})
    return answer(n, names[n % len(names)], y, request.request_id.removeprefix(f"e{n}/"))


def log_of(messages, log=()):
    """Return the consensus log after some messages."""
    log = list(log)
    for message in messages:
        if isinstance(message, Retraction):
            log = [line for line in log if line not in message.taken]
        elif isinstance(message, LabelledExample):
            log.append(message)
    return sorted(log, key=lambda line: line.sequence)


def asking():
    """A learner by which all labels have been asked for."""
    return SkepticalClassifier(
        GPClassifier(), query=AlwaysAsk(), drift_test=DriftTest(), rescale=True, seed=1
    )


@cache
def named():
    """A loop that has named a liar: its log, when and what was taken back, and the log before."""
    loop, log = InteractiveLoop(asking()), []
    for n in range(150):
        messages = play(loop, [n], seconds=False)
        found = [m for m in messages if isinstance(m, Retraction)]
        if found:
            return loop, log_of(messages, log), (n, *found), log
        log = log_of(messages, log)
    raise AssertionError("no one was named")


def restarted(loop, lines):
    return InteractiveLoop.from_parts(loop.parts(), lines, isgp(seed=1))


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize(("liar", "named"), [(EVE, [EVE]), (None, [])])
def test_who_labels_everything_unasked_is_named_soon_if_it_is_lies(liar, named, restarts):
    loop, log = InteractiveLoop(isgp(seed=1)), []
    log = log_of(play(loop, range(6)))
    for n in range(6, 66):
        log = log_of(play(loop, [n], names=(EVE,), liar=liar), log)
        if restarts:
            loop = (
                restarted(loop, log)
                if n % 2
                else InteractiveLoop.restore(loop.snapshot(), isgp(seed=1))
            )
        if loop.quarantined:
            break
    assert loop.quarantined == named
    # The last of 40 labels, those among the first six events included.
    assert not named or n < 40


def test_a_liar_among_three_is_named_and_a_restart_changes_nothing():
    loop = InteractiveLoop(isgp(seed=1))
    messages = play(loop, range(150))
    assert loop.quarantined == [EVE]
    [retraction] = [m for m in messages if isinstance(m, Retraction)]
    assert retraction.annotator == EVE
    assert 5 <= len(retraction.taken) <= 40
    other = InteractiveLoop(isgp(seed=1))
    found, log = [], []
    for first in range(0, 150, 15):
        found += play(other, range(first, first + 15))
        log = log_of(found)
        if first % 30:
            other = InteractiveLoop.restore(other.snapshot(), isgp(seed=1))
        else:
            other = restarted(other, log)
    assert found == messages
    assert other.snapshot() == loop.snapshot()


@pytest.mark.parametrize("overlap", [0.0, 1.0])
def test_second_answers_are_evidence_and_a_restart_changes_nothing(overlap):
    """Events are alike for the learner: only what two annotators say of the same one tells.

    Without overlap only the events of who is suspected are put to another annotator.
    """
    people = People(overlap=overlap)
    loop, other = (InteractiveLoop(blind(), people=people) for _ in range(2))
    messages, found = play(loop, range(120)), []
    assert loop.quarantined == [EVE]
    for first in range(0, 120, 20):
        found += play(other, range(first, first + 20))
        other = InteractiveLoop.from_parts(other.parts(), log_of(found), blind(), people=people)
    assert found == messages
    [retraction] = [m for m in messages if isinstance(m, Retraction)]
    assert not [
        e for e in loop.model.examples() if e.answer and e.answer.second
        and EVE in (e.answer.annotator, e.answer.second.annotator)
    ]  # fmt: skip
    assert EVE in {line.annotator for line in retraction.taken}


def blind():
    """A learner that sees nothing of where it is."""
    learner = Discard("north", "east") | GPClassifier()
    return SkepticalClassifier(learner, query=AlwaysAsk(), warm_up=0, seed=1)


def test_what_a_liar_has_taught_is_taken_back_as_if_it_had_never_been_said():
    loop, log, [n, retraction], before = named()
    assert {line.annotator for line in retraction.taken} == {EVE}
    its_event, by, _ = told(n)
    last = [line for line in log if line.event_id == f"e{n}"]
    assert bool(last) == (by != EVE)
    expected = rebuilt(loop.model, words_without([*before, *last], EVE))
    assert known_of(loop.model) == known_of(expected)
    assert [e.event_id for e in loop.model.examples()] == [
        line.event_id for line in log if line.y is not None
    ]
    # It is what `retract` does, of a loop that did not know.
    other, untaught = InteractiveLoop(asking(), people=People(quarantine=False)), []
    untaught = log_of(play(other, range(n), seconds=False))
    assert untaught == before
    other.on_event(its_event, float(n))
    done = other.retract(EVE, before, float(n))
    assert done.retraction == retraction
    if not last:
        assert known_of(other.model) == known_of(loop.model)


def test_what_was_taken_back_can_be_put_back_for_an_annotator_who_is_trusted():
    loop, log, [_, retraction], before = named()
    trusting = People(trusted=frozenset([EVE]))
    again = InteractiveLoop.from_parts(loop.parts(), log, asking(), people=trusting)
    done = again.reinstate(retraction, log, 200.0)
    first_words = {line.event_id: line.y for line in before}
    assert first_words.items() <= {e.event_id: e.y for e in again.model.examples()}.items()
    assert again.quarantined == []
    assert "quarantined" not in kinds(play(again, range(150, 170)))
    assert len(done.log) >= len(before)


def test_a_loop_that_lacks_lines_of_its_log_keeps_what_it_has_learned():
    _, _, [n, _], before = named()
    other = InteractiveLoop(asking())
    play(other, range(n))
    other = InteractiveLoop.from_parts(other.parts(), before[1:], asking())
    messages = play(other, range(n, 150))
    assert other.quarantined == [EVE]
    assert not [m for m in messages if isinstance(m, Retraction)]
    assert any(e.answer and e.answer.annotator == EVE for e in other.model.examples())


class NamingJudge(AnnotatorJudge):
    """A judge that names bob once `n_events` events, of `n`, have been observed."""

    n = n_events = 0

    def n_answers(self, annotator):
        return self.n_events if annotator == "bob" else 0

    def evidence_against(self, annotator, without=()):
        late = self.n_events >= self.n and annotator == "bob"
        return 1e9 if late and annotator not in without else 0.0


class NamesBob(SkepticalClassifier):
    """A learner that names bob once it has observed a number of events."""

    def __init__(self, model, warm_up=16, seed=3, review=None, drift_test=None, n=40):
        super().__init__(model, warm_up=warm_up, seed=seed, review=review, drift_test=drift_test)
        self.n = n

    def annotators(self):
        return ("ann", "bob", "eve")

    def annotator_judge(self):
        judge = NamingJudge(self._store, self.annotators())
        judge.n, judge.n_events = self.n, self.state()["n_events"]
        return judge


@examples(3)
@given(seed=st.integers(0, 10**6), n=st.integers(20, 45))
@example(seed=1992, n=20)
@example(seed=90208, n=20)
def test_corrections_and_challenges_are_taken_back_too_and_a_restart_changes_nothing(seed, n):
    def model():
        review = LeaveOneOutReview(0.2, every=3)
        test = DriftTest(run_length=1.05)  # finds drifts where there are none
        return NamesBob(GPClassifier(), review=review, drift_test=test, n=n)

    spans = {"expires_after_s": 5.0, "answer_horizon_s": 60.0}
    loop, messages, log = InteractiveLoop(model(), **spans), [], []
    story = Story(seed, labels=MIXED)
    other = InteractiveLoop(model(), **spans)
    for step in range(80):
        given_step = story.next(messages)
        messages = tell(loop, given_step)
        assert repr(tell(other, given_step)) == repr(messages)
        retractions = [m for m in messages if isinstance(m, Retraction)]
        if retractions:
            [retraction] = retractions
            made, at = set(retraction.made), messages.index(retraction)
            before = log_of(messages[:at], log)  # challenges that just expired are settled first
            fresh = [
                m
                for m in messages[at + 1 :]
                if isinstance(m, LabelledExample)
                and (m.event_id, m.revision) not in made
                and m.sequence > before[-1].sequence
            ]
            # `words_without` knows no second answers; test_second_questions.py is about these.
            if not fresh and not any(line.origin == "aggregated" for line in before):
                expected = rebuilt(loop.model, words_without(before, "bob"))
                assert known_of(loop.model) == known_of(expected)
        log = log_of(messages, log)
        assert loop.model.as_held(examples_in(log)) == loop.model.examples()
        if step % 14 == 0:
            other = InteractiveLoop.restore(other.snapshot(), model())
        elif step % 14 == 7:
            other = InteractiveLoop.from_parts(other.parts(), log, model(), **spans)
            assert other.snapshot() == loop.snapshot()


def test_who_corrects_right_answers_to_lies_is_named_and_a_restart_changes_nothing():
    loop, log = InteractiveLoop(isgp(seed=1)), []
    for n in range(90):
        messages = play(loop, [n], liar=None)
        place = told(n, liar=None)[2]
        if told(n)[1] == EVE:
            lie = replace(
                answer(n, EVE, PLACES[(PLACES.index(place) + 1) % 4]),
                answer_id=f"c{n}",
                request_id=None,
                supersedes=f"a{n}",
            )
            messages += loop.on_answer(lie, float(n))
        log = log_of(messages, log)
        if n % 10 == 0:
            other = InteractiveLoop.restore(loop.snapshot(), isgp(seed=1))
            loop = restarted(loop, log)
            assert loop.model.examples() == other.model.examples()
            assert loop.snapshot() == other.snapshot()
    assert loop.quarantined == [EVE]


@pytest.mark.parametrize("names", [(EVE,), (ANN, EVE)])
def test_one_or_two_annotators_are_never_judged(names):
    loop, other = (
        InteractiveLoop(isgp(seed=1), people=People(quarantine=on)) for on in (True, False)
    )
    assert play(loop, range(60), names=names) == play(other, range(60), names=names)
    assert loop.parts() == other.parts()


def test_honest_annotators_are_not_in_quarantine():
    loop = InteractiveLoop(isgp(seed=1))
    requests = [m for m in play(loop, range(120), liar=None) if isinstance(m, LabelRequest)]
    assert requests
    assert loop.quarantined == []
