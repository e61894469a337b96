"""A restart in the middle of a conversation: everything after it is bitwise the same.

One loop gets 600 readings without a break. The other is saved to bytes after 300 of them, with a
question open, and restored in a new loop, as after a crash.

Prints:

    saved after 300 readings: 40 labels, 56 kB
    769 of 769 messages are the same as without the restart
"""

from streamgp import InteractiveLoop, SimulatedAnnotator, datasets, isgp
from streamgp.interactive import AnswerQueue, Challenge, Event, LabelRequest, Message


def play(loop: InteractiveLoop, queue: AnswerQueue, first: int, last: int) -> list[Message]:
    """Hand over some readings of the log, and each answer five readings after its question."""
    sent: list[Message] = []
    for n, (x, room) in enumerate(datasets.WiFiRooms().take(last)):
        if n < first:
            continue
        event = Event(event_id=str(n), x=x, occurred_at=float(n), truth=room)
        queue.see(event)
        heard = [message for answer in queue.due(n) for message in loop.on_answer(answer, float(n))]
        for message in (new := heard + loop.on_event(event, now=float(n))):
            if isinstance(message, LabelRequest | Challenge):
                queue.ask(message, now=float(n))
        sent += new
    return sent


def annotator() -> SimulatedAnnotator:
    return SimulatedAnnotator(error_rate=0.2, delay=5.0, classes=[1, 2, 3, 4], seed=1)


def main() -> None:
    whole = play(InteractiveLoop(isgp(seed=1)), AnswerQueue(annotator()), 0, 600)

    loop, queue = InteractiveLoop(isgp(seed=1)), AnswerQueue(annotator())
    before = play(loop, queue, 0, 300)
    saved = loop.snapshot()
    print(f"saved after 300 readings: {loop.model.n_learned} labels, {len(saved) // 1024} kB")
    restored = InteractiveLoop.restore(saved, isgp(seed=1))
    after = play(restored, queue, 300, 600)

    same = sum(a == b for a, b in zip(whole, before + after, strict=True))
    print(f"{same} of {len(whole)} messages are the same as without the restart")


if __name__ == "__main__":
    main()
