"""Whether the log explains the predictions, and whether snapshots agree with the topics."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from connectors.storage.snapshots import StateDirectory
from connectors.topics import Record, TopicName
from connectors.wire.state_records import History
from connectors.worker.compatibility import UnfitTopicsError
from connectors.worker.partition import Partition
from connectors.worker.settings import LoopSettings

_CLOSE = 1e-9
_ENOUGH = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """Number of predictions that the learner rebuilt from the consensus log repeats.

    Parameters
    ----------
    same
        Bitwise.
    close
        Only up to 1e-9.
    unexplained
        Not at all; the search ends after fifty of one key.

    """

    same: int = 0
    close: int = 0
    unexplained: int = 0

    def __add__(self, other: Explained) -> Explained:
        return Explained(
            same=self.same + other.same,
            close=self.close + other.close,
            unexplained=self.unexplained + other.unexplained,
        )


def explain(
    model: Any,
    lines: Sequence[Mapping[str, Any]],
    predictions: Iterable[Mapping[str, Any]],
    features: Mapping[str, dict[str, float]],
) -> Explained:
    """Repeat the predictions of one key: probabilities, and the score and draw of the rule.

    Between two predictions any number of lines may have been learned. So each prediction is
    explained by the first state of the learner, from that of the last prediction on, that holds as
    many examples and predicts the same.

    Parameters
    ----------
    model
        An untrained skeptical classifier without scaling.
    lines
        The lines of the key, in order.
    predictions
        Its predictions, in order.
    features
        The features of its events.

    """
    found = Explained()
    pupil = _Pupil(model, lines)
    for prediction in predictions:
        start = pupil.n_read
        # A prediction of an event that is on no topic is reported elsewhere.
        x = features.get(prediction["event_id"], {})
        while (distance := pupil.distance(prediction, x)) > _CLOSE and pupil.n_read < len(lines):
            pupil.read_on()
        if distance > _CLOSE:
            found += Explained(unexplained=1)
            if found.unexplained == _ENOUGH:
                break
            pupil = _Pupil(model, lines)
            while pupil.n_read < start:
                pupil.read_on()
        else:
            found += Explained(same=1) if distance == 0.0 else Explained(close=1)
    return found


class _Pupil:
    """A learner that reads the consensus log."""

    def __init__(self, model: Any, lines: Sequence[Mapping[str, Any]]) -> None:
        self._model = model.clone()
        self._lines = lines
        self._held: set[str] = set()
        self.n_read = 0

    def read_on(self) -> None:
        """Learn the next line."""
        line = self._lines[self.n_read]
        self.n_read += 1
        event_id, y = line["event_id"], _label(line.get("y"))
        if y is None:
            self._model.forget_one(event_id)
            self._held.remove(event_id)
        elif event_id in self._held:
            self._model.relabel_one(event_id, y)
        else:
            self._model.settle_one(line["x"], y, given=y, challenged=False, event_id=event_id)
            self._held.add(event_id)

    def distance(self, prediction: Mapping[str, Any], x: dict[str, float]) -> float:
        """Return by how much a prediction differs from the one made here."""
        if prediction["n_learned"] != self._model.n_learned:
            return float("inf")
        proba = self._model.predict_proba_one(x)
        theirs = {_label(y): p for y, p in prediction["proba"]}
        decided = self._model.query_one(x, event_id=prediction["event_id"], now=prediction["at"])
        said = prediction["decision"]
        if list(proba) != list(theirs) or decided.criterion != said["criterion"]:
            return float("inf")
        pairs = [
            (decided.score, said["score"]),
            (decided.threshold, said["threshold"]),
            *((proba[label], theirs[label]) for label in proba),
        ]
        return max(abs(ours - told) for ours, told in pairs)


def _label(plain: Any) -> Any:
    """Return the label that a message's label stands for, as floats are tagged."""
    return plain["float"] if isinstance(plain, dict) else plain


class StateOfTopics:
    """State that the topics `state` and `consensus` hold, to be compared with snapshots.

    Examples
    --------
    >>> StateOfTopics().differences(LoopSettings(model=None), Path("nowhere"), now=0.0)
    (0, [])

    """

    # _last  for each partition, the last record of each key, as compaction leaves it
    def __init__(self) -> None:
        self._last: dict[int, dict[tuple[TopicName, bytes | None], Record]] = defaultdict(dict)

    def add(self, record: Record) -> None:
        """Add the next record of its partition."""
        self._last[record.partition][record.topic, record.key] = record

    def differences(
        self, settings: LoopSettings, state: Path, *, now: float
    ) -> tuple[int, list[str]]:
        """Return the number of keys, and what differs.

        The newest snapshot of each partition counts, that of the worker that had it last. If that
        worker did nothing after it had restored the partition, the snapshot is behind the topics,
        and is brought up to date as it would be after a restart.

        Parameters
        ----------
        settings
            Settings of the loops.
        state
            Folder with the workers' directories.
        now
            The time. What was due before it has ended in both.

        """
        n_keys, flaws = 0, []
        for number in sorted(self._last):
            try:
                rebuilt = Partition(
                    number, replace(settings, max_keys=None), None, now=now, note=flaws.append
                )
                history = self._history(number, {})
                rebuilt.bring_up(history)
                entities = [entity for entity in history.entities() if entity]
                n_keys += len(entities)
                flaws += self._compared(number, settings, state, now, rebuilt.loops, entities)
            except UnfitTopicsError as error:
                flaws.append(str(error))
        return n_keys, flaws

    def _history(self, number: int, starts: Mapping[TopicName, int]) -> History:
        history = History()
        for record in self._last[number].values():
            if record.offset >= starts.get(record.topic, 0):
                history.take(record)
        return history

    def _compared(
        self,
        number: int,
        settings: LoopSettings,
        state: Path,
        now: float,
        rebuilt: Any,
        entities: Sequence[str],
    ) -> list[str]:
        notes: list[str] = []
        newest, place = -1, None
        for path in state.glob(f"*/partition-{number}.snapshot"):
            with _opened(number, settings, path.parent, now, notes) as partition:
                at = partition.starts.get("state", -1)
            newest, place = max((newest, place), (at, path.parent), key=lambda found: found[0])
        if place is None or newest < 0:
            return [*notes, f"partition {number} has no snapshot"]
        with _opened(number, settings, place, now, notes) as partition:
            partition.bring_up(self._history(number, partition.starts))
            if any("forgotten since" in note for note in notes):
                return [f"partition {number} has no snapshot from after a key was forgotten"]
            return [*notes, *_differences(partition.loops, rebuilt, entities, now)]


@contextmanager
def _opened(
    number: int, settings: LoopSettings, path: Path, now: float, notes: list[str]
) -> Iterator[Partition]:
    with StateDirectory(path) as directory:
        partition = Partition(number, settings, directory, now=now, note=notes.append)
        try:
            yield partition
        finally:
            partition.close()


def _differences(kept: Any, rebuilt: Any, entities: Sequence[str], now: float) -> list[str]:
    kept.on_time(now)
    rebuilt.on_time(now)
    flaws = []
    if kept.n_keys != len(entities):
        flaws.append(f"{kept.n_keys} keys in the snapshot, {len(entities)} in the topics")
    for key in entities:
        kept.withdraw(key, "no such event", now)  # restores the loop if it was evicted
        ours, theirs = kept.loops.get(key), rebuilt.loops.get(key)
        if ours is None or theirs is None or ours.snapshot() != theirs.snapshot():
            flaws.append(f"key {key} is not in the snapshot what the topics make of it")
    return flaws
