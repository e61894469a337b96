"""As on Kafka, without Kafka: topics in memory, a worker, a sensor and an annotator.

Sensor, annotator and worker communicate through topics alone. `open_broker` also accepts
`kafka://HOST:PORT` and `file://DIR`, for which `streamgp run` is the worker.

Prints:

    79 of 100 readings predicted right, 18 labels asked
"""

import threading
import time

from connectors import open_broker, run
from streamgp import InteractiveLoop, datasets, isgp
from streamgp.interactive import (
    Answer,
    Challenge,
    Event,
    LabelledExample,
    LabelRequest,
    Prediction,
)


def main() -> None:
    broker = open_broker("memory://")
    loop = InteractiveLoop(isgp(seed=1))
    worker = threading.Thread(
        target=run, args=(loop, broker.source(), broker.sink()), kwargs={"clock": time.time}
    )
    worker.start()

    inputs = broker.publisher()
    outputs = broker.source(["predictions", "requests", "consensus"], group="archive")
    readings = list(datasets.WiFiRooms())[::20]
    n_right, learned = 0, []
    for n, (x, room) in enumerate(readings):
        inputs.send(Event(event_id=f"reading-{n}", x=x, occurred_at=time.time()))
        inputs.flush()
        is_settled = False
        while not is_settled:
            for received in outputs.poll(timeout_s=10.0):
                message = received.message
                if isinstance(message, Prediction):
                    n_right += message.y == f"room {room}"
                    is_settled = not message.decision.ask
                elif isinstance(message, LabelRequest | Challenge):
                    inputs.send(answer_to(message, f"room {room}"))
                    inputs.flush()
                elif isinstance(message, LabelledExample):
                    learned.append(message.y)
                    is_settled = True
    broker.close()
    worker.join()
    print(f"{n_right} of {len(readings)} readings predicted right, {len(learned)} labels asked")


def answer_to(request: LabelRequest | Challenge, y: str) -> Answer:
    return Answer(
        answer_id=f"answer to {request.request_id}",
        request_id=request.request_id,
        event_id=request.event_id,
        y=y,
        answered_at=time.time(),
    )


if __name__ == "__main__":
    main()
