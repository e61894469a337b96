"""Raw sensor rows as windows: 50 rows per second become one event every few seconds.

A synthetic accelerometer stands still, walks and cycles. `Windows` cuts its rows, which arrive out
of order by up to .2 s, into windows of 4 s with spectral features. A River pipeline predicts each
one, then learns it; then `isgp()` predicts the same windows and asks for few labels.

Prints:

12000 rows, 59 windows of 200 rows, 36 features
steps at 2.0 Hz when walking, pedalling at 1.0 Hz when cycling
naive Bayes: 0.88 right, all 59 labels learned
isgp(): 0.83 right, 21 labels asked

"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from typing import Any

from river import metrics, naive_bayes, preprocessing

from streamgp import InteractiveLoop, isgp
from streamgp.interactive import Answer, Event, LabelRequest, Prediction
from streamgp.windows import Windows

RATE_HZ = 50
STEPS_HZ = {"standing": 0.0, "walking": 2.0, "cycling": 1.0}


def rows(rng: random.Random) -> Iterator[dict[str, Any]]:
    """Yield four minutes of acceleration; an activity lasts 20 seconds."""
    for n in range(240 * RATE_HZ):
        t = n / RATE_HZ
        activity = list(STEPS_HZ)[int(t // 20) % 3]
        wave = math.sin(2.0 * math.pi * STEPS_HZ[activity] * t)
        noise = [rng.gauss(0.0, 0.1) for _ in range(3)]
        swing = 0.0 if activity == "standing" else 2.0 if activity == "walking" else 1.0
        x, y, z = noise[0], noise[1] + 0.3 * swing * wave, 9.81 + noise[2] + swing * wave
        yield {"time": 1.8e9 + t, "ax": x, "ay": y, "az": z, "activity": activity}


def main() -> None:
    """Cut, predict, answer, and print."""
    rng = random.Random(1)
    stream = sorted(rows(rng), key=lambda row: row["time"] + rng.uniform(0.0, 0.2))
    features = ["basic", "dominant_frequency", "dominant_share", "spectral_entropy"]
    windows = Windows(
        4.0, features=features, vectors=[["ax", "ay", "az"]], label="activity", grace_s=0.2
    )
    closed = [window for row in stream for window in windows.update_one(row)]
    print(f"{len(stream)} rows, {len(closed)} windows of {closed[5]['n_rows']} rows, ", end="")
    print(f"{len(closed[0]['x'])} features")
    steps = {w["y"]: w["x"]["az.dominant_frequency"] for w in closed if w["purity"] == 1.0}
    print(f"steps at {steps['walking']:.1f} Hz when walking, ", end="")
    print(f"pedalling at {steps['cycling']:.1f} Hz when cycling")

    model = preprocessing.StandardScaler() | naive_bayes.GaussianNB()
    metric = metrics.Accuracy()
    for window in closed:
        metric.update(window["y"], model.predict_one(window["x"]))
        model.learn_one(window["x"], window["y"])
    print(f"naive Bayes: {metric.get():.2f} right, all {len(closed)} labels learned")

    loop = InteractiveLoop(isgp(seed=1))
    metric, n_asked = metrics.Accuracy(), 0
    for window in closed:
        now = window["end"]
        event = Event(event_id=window["event_id"], x=window["x"], occurred_at=now)
        for message in loop.on_event(event, now):
            if isinstance(message, Prediction):
                metric.update(window["y"], message.y)
            elif isinstance(message, LabelRequest):
                n_asked += 1
                answer = Answer(
                    answer_id=f"{event.event_id}/answer",
                    request_id=message.request_id,
                    event_id=event.event_id,
                    y=window["y"],
                    answered_at=now,
                )
                loop.on_answer(answer, now)
    print(f"isgp(): {metric.get():.2f} right, {n_asked} labels asked")


if __name__ == "__main__":
    main()
