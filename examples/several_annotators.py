"""Several annotators: the learner finds out whose answers to doubt.

Ann errs in one answer of fifty, Bob in two of five. Each question goes to one of them, and a
challenge goes to the annotator whose answer is doubted.

Prints:

    ann: 80 answers, 9 of them challenged, estimated error rate 13%
    bob: 74 answers, 40 of them challenged, estimated error rate 45%
"""

from streamgp import AnnotatorPanel, InteractiveLoop, SimulatedAnnotator, datasets, isgp
from streamgp.interactive import AnswerQueue, Challenge, Event, LabelRequest


def main() -> None:
    rooms = [1, 2, 3, 4]
    ann = SimulatedAnnotator(0.02, classes=rooms, seed=1, name="ann")
    bob = SimulatedAnnotator(0.4, classes=rooms, seed=2, name="bob")
    queue = AnswerQueue(AnnotatorPanel([ann, bob], seed=1))
    loop = InteractiveLoop(isgp(seed=1))
    asked, challenged = dict.fromkeys(("ann", "bob"), 0), dict.fromkeys(("ann", "bob"), 0)
    for n, (x, room) in enumerate(datasets.WiFiRooms()):
        event = Event(event_id=str(n), x=x, occurred_at=float(n), truth=room)
        queue.see(event)
        messages = loop.on_event(event, now=float(n))
        for request in messages:
            if isinstance(request, LabelRequest | Challenge):
                queue.ask(request, now=float(n))
        for answer in queue.due(float(n)):
            asked[answer.annotator] += not answer.request_id.endswith("challenge/1")
            for message in loop.on_answer(answer, now=float(n)):
                if isinstance(message, Challenge):
                    challenged[message.annotator] += 1
                    queue.ask(message, now=float(n))
    for name in ("ann", "bob"):
        print(
            f"{name}: {asked[name]} answers, {challenged[name]} of them challenged, "
            f"estimated error rate {loop.model.error_rate(name):.0%}"
        )


if __name__ == "__main__":
    main()
