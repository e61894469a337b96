"""Write a log to feed: four phones move through the rooms of the recorded WiFi log.

    python docker/rooms.py rooms.csv

Each phone reads the signals once a minute and the four take turns, 2000 readings in total. The log
ends now, so that no reading is in the future, however fast it is fed.

"""

from __future__ import annotations

import csv
import sys
import time
from collections.abc import Iterator

from streamgp.apps.replay.demo_data import named_readings

# These names fall into partitions 3, 2, 1 and 1 of four: each of two workers has two phones.
PHONES = ("phone-1", "phone-2", "phone-3", "phone-4")
STEP_S = 15.0


def rows(now: float) -> Iterator[dict[str, object]]:
    """Return the readings in order, the last of them at a given time."""
    readings = list(named_readings())
    start = now - STEP_S * (len(readings) - 1)
    for n, (x, room) in enumerate(readings):
        yield {
            "time": round(start + STEP_S * n, 3),
            "phone": PHONES[n % len(PHONES)],
            **x,
            "room": room,
        }


def main(path: str) -> None:
    """Write the file."""
    table = list(rows(time.time()))
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(table[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(table)
    print(f"{len(table)} readings of {len(PHONES)} phones are in {path}")


if __name__ == "__main__":
    main(sys.argv[1])
