"""The loop by hand: events and answers go in, messages come out.

Every tenth reading of the WiFi log is handed to the loop, and an annotator answers its questions,
once wrongly.

Prints:

    reading-0: where are you?
    reading-0: learned 1 (asked)
    ...
    reading-139: where are you?
    reading-139: you said 1, everything near it is [3, 3, 3], are you sure?
    reading-139: learned 3 (revised)
    ...
    31 labels learned from 200 readings
"""

from itertools import islice

from streamgp import InteractiveLoop, datasets, isgp
from streamgp.interactive import Answer, Challenge, Event, LabelledExample, LabelRequest

SLIP = "reading-139/label"  # the request that the annotator answers wrongly


def answer(question: LabelRequest | Challenge, room: int) -> Answer:
    return Answer(
        answer_id=f"answer to {question.request_id}",
        request_id=question.request_id,
        event_id=question.event_id,
        y=1 if question.request_id == SLIP else room,
        annotator="ann",
        answered_at=question.requested_at + 5.0,
    )


def main() -> None:
    loop = InteractiveLoop(isgp(seed=1), expires_after_s=3600.0)
    for n, (x, room) in enumerate(islice(datasets.WiFiRooms(), 0, None, 10)):
        at = 60.0 * n
        messages = loop.on_event(Event(event_id=f"reading-{n}", x=x, occurred_at=at), now=at)
        while messages:
            message = messages.pop(0)
            who = f"{message.event_id}:"
            if isinstance(message, LabelRequest):
                print(who, "where are you?")
            elif isinstance(message, Challenge):
                near = [neighbour.y for neighbour in message.neighbours]
                print(who, f"you said {message.given}, everything near it is {near}, are you sure?")
            elif isinstance(message, LabelledExample):
                print(who, f"learned {message.y} ({message.origin})")
            if isinstance(message, LabelRequest | Challenge):
                said = answer(message, room)
                messages += loop.on_answer(said, now=said.answered_at)
    print(loop.model.n_learned, "labels learned from 200 readings")


if __name__ == "__main__":
    main()
