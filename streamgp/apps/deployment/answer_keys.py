"""Keys that sign answers, by annotator, in a file or an environment variable.

The file is a JSON object from names to keys in hexadecimal digits, readable only by its owner. It
is checked for changes at every answer, so that a new annotator needs no restart of workers. While a
key is being replaced, a name has a list: the first key signs, answers under any of them count.

"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import msgspec

from connectors.storage.snapshots import StateError, file_version, locked, write_snapshot
from connectors.wire.signatures import Signatures
from streamgp.apps.console import in_one_line
from streamgp.config.secrets import kept_secret
from streamgp.config.settings import People, WorkerConfig
from streamgp.config.validation import ConfigError

_N_BYTES = 32
_LEAST_BYTES = 16
_LONGEST = 2**20
_Several = Annotated[list[str], msgspec.Meta(min_length=1)]
_decode = msgspec.json.Decoder(dict[str, str | _Several]).decode
_log = logging.getLogger("streamgp.keys")
_log.addHandler(logging.NullHandler())  # a program without a log, such as `annotate`, says nothing


class AnswerKeys:
    """The keys of the annotators of a deployment.

    Raises
    ------
    ConfigError
        If both are given, the environment variable is not set, or the contents are not keys. A
        missing file has no keys yet.

    """

    # _seen  version of the file when it was last read
    # _keys  keys by annotator, in that version
    def __init__(self, people: People) -> None:
        if people.keys_file is not None and people.keys_env is not None:
            raise ConfigError("people.keys_file and people.keys_env: give only one of them")
        self._people = people
        self._file = None if people.keys_file is None else Path(people.keys_file)
        self._seen: tuple[int, int, int] | None = None
        self._keys = self._read()

    def keys_of(self, annotator: str) -> Sequence[bytes]:
        """Return the keys of an annotator, the one that signs first; none if there are none."""
        version = self._version()
        if version != self._seen:
            try:
                self._keys = self._read()
            except ConfigError as error:
                # Such as an unfinished edit: keep the known keys. Logged once, since a key that was
                # meant to be removed stays valid, too.
                self._seen = version
                fields = {"reason": str(error), "consequence": "the keys known before stand"}
                _log.warning("keys-unused", extra={"fields": fields})
        return self._keys.get(annotator, ())

    def make(self, annotator: str) -> None:
        """Create a key for an annotator who has none.

        Raises
        ------
        ConfigError
            If keys are in an environment variable, to which none can be added.
        StateError
            If the file cannot be written.

        """
        if self.keys_of(annotator):
            return
        if self._file is None:
            raise ConfigError(
                "people.keys_env: the environment variable that it names has no key for "
                f"{annotator!r}; add it, or name a file with keys_file"
            )
        with locked(self._file):
            keys = self._read()
            keys.setdefault(annotator, [secrets.token_bytes(_N_BYTES)])
            texts = {name: [key.hex() for key in several] for name, several in keys.items()}
            plain = {name: t[0] if len(t) == 1 else t for name, t in texts.items()}
            write_snapshot(self._file, msgspec.json.encode(plain))
        self._keys = self._read()

    def _version(self) -> tuple[int, int, int] | None:
        return None if self._file is None else file_version(self._file)

    def _read(self) -> dict[str, list[bytes]]:
        people, self._seen = self._people, self._version()
        if self._file is not None and self._seen is None:
            return {}
        text = kept_secret(
            "keys", people.keys_env, people.keys_file, section="people", longest=_LONGEST
        )
        where, source = "people.keys_file", str(self._file)
        if self._file is None:
            where, source = "people.keys_env", str(people.keys_env)
        try:
            keys = {
                name: [bytes.fromhex(key) for key in ([given] if isinstance(given, str) else given)]
                for name, given in _decode(text or "{}").items()
            }
        except (msgspec.DecodeError, ValueError):  # not to be repeated: it contains secrets
            raise ConfigError(
                f'{where}: no keys found in {source}, expected {{"NAME": "HEXADECIMAL DIGITS"}}, '
                "or a list of several keys of a name"
            ) from None
        if any(len(key) < _LEAST_BYTES for several in keys.values() for key in several):
            raise ConfigError(
                f"{where}: a key found in {source} is too short, expected at least "
                f"{2 * _LEAST_BYTES} hexadecimal digits"
            )
        return keys


def signatures_of(
    config: WorkerConfig, *, make_for: Sequence[str] = (), knows_all: bool = True
) -> Signatures | None:
    """Return the signatures of a deployment's answers, None if they are not signed.

    Parameters
    ----------
    make_for
        Annotators for whom a missing key is created.
    knows_all
        As in `Signatures`: false for a single annotator, who may use another machine.

    Raises
    ------
    ConfigError
        If the keys are not where the configuration says.

    """
    people = config.people
    if people.keys_file is None and people.keys_env is None:
        return None
    keys = AnswerKeys(people)
    with in_one_line(StateError):
        for name in make_for:
            keys.make(name)
    return Signatures(keys.keys_of, supervisors=people.supervisors, knows_all=knows_all)
