"""Many users, each with their own learner; only the most recent ones are in memory.

Ten people walk through the same rooms, and each has other names for them. Three learners are kept
ready; the others are bytes in a store, which is in memory here and usually a
`connectors.SqliteStore`.

Prints:

    10 users, 3 of them in memory
    184 labels asked, 76% of 790 predictions right
"""

from streamgp import KeyedLoops, datasets, isgp
from streamgp.interactive import Answer, Event, LabelRequest, Prediction


def main() -> None:
    users = [f"user {n}" for n in range(10)]
    loops = KeyedLoops(isgp(seed=1), max_keys=3)
    n_asked = n_predicted = n_right = 0
    for n, (x, room) in enumerate(list(datasets.WiFiRooms())[::5] * 2):
        user, at = users[n // 4 % 10], float(n)  # each user sends four readings in a row
        name = f"{user}'s room {room}"
        messages = loops.on_event(Event(event_id=str(n), key=user, x=x, occurred_at=at), now=at)
        for message in messages:
            if isinstance(message, Prediction) and message.y is not None:
                n_predicted += 1
                n_right += message.y == name
            elif isinstance(message, LabelRequest):
                n_asked += 1
                answer = Answer(
                    answer_id=message.request_id,
                    request_id=message.request_id,
                    event_id=message.event_id,
                    key=user,
                    y=name,
                    answered_at=at,
                )
                loops.on_answer(answer, now=at)
    print(f"{loops.n_keys} users, {len(loops.loops)} of them in memory")
    print(f"{n_asked} labels asked, {n_right / n_predicted:.0%} of {n_predicted} predictions right")


if __name__ == "__main__":
    main()
