"""Replay a log through the library, as `streamgp replay` does.

A small CSV file is written, then read back row by row. A simulated annotator answers five minutes
late and is sometimes wrong. Every message is written to a file.

Prints:

    500 events, 77 answers
    predictions.jsonl: 500 messages
    requests.jsonl: 77 messages
    answers.jsonl: 77 messages
    consensus.jsonl: 62 messages
    rejected.jsonl: 0 messages
    row 127 was learned as 'room 2' after a challenge
"""

import csv
from pathlib import Path
from tempfile import TemporaryDirectory

from connectors import AnnotatedLog, LogSource, MessageFiles, read_messages, run
from streamgp import InteractiveLoop, SimulatedAnnotator, datasets, isgp
from streamgp.interactive import AnswerQueue


def write_log(path: Path) -> None:
    """Write every fourth reading of the WiFi log, one per minute."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        for n, (x, room) in enumerate(datasets.WiFiRooms()):
            if n == 0:
                writer.writerow(["time", *x, "room"])
            if n % 4 == 0:
                writer.writerow([15 * n, *x.values(), f"room {room}"])


def main() -> None:
    with TemporaryDirectory() as directory:
        path, out = Path(directory, "rooms.csv"), Path(directory, "messages")
        write_log(path)

        loop = InteractiveLoop(isgp(seed=1), expires_after_s=3600.0)
        annotator = SimulatedAnnotator(error_rate=0.2, delay=300.0, seed=1)
        log = LogSource(path, label="room", time="time")
        files = MessageFiles(out)
        annotated = AnnotatedLog(log, files, AnswerQueue(annotator))
        result = run(loop, annotated, annotated)
        annotated.close()

        print(f"{result.n_events} events, {result.n_answers} answers")
        for name in ("predictions", "requests", "answers", "consensus", "rejected"):
            messages = list(read_messages(out / f"{name}.jsonl"))
            print(f"{name}.jsonl: {len(messages)} messages")
        example = next(m for m in read_messages(out / "consensus.jsonl") if m.origin == "revised")
        print(f"row {example.event_id} was learned as {example.y!r} after a challenge")


if __name__ == "__main__":
    main()
