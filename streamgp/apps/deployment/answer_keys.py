"""Keys with which answers are signed: a file, or an environment variable, of one key per annotator.

The file is a JSON object from names to keys in hexadecimal digits, for its owner alone. It is
looked at with every answer, so that a new annotator needs no restart of workers.

"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from pathlib import Path

import click
import msgspec

from connectors.storage.snapshots import StateError, file_version, locked, write_snapshot
from connectors.wire.signatures import Signatures
from streamgp.config.secrets import kept_secret
from streamgp.config.settings import People, WorkerConfig
from streamgp.config.validation import ConfigError

_N_BYTES = 32
_LEAST_BYTES = 16
_LONGEST = 2**20
_decode = msgspec.json.Decoder(dict[str, str]).decode


class AnswerKeys:
    """The keys of the annotators of a deployment.

    Parameters
    ----------
    people
        Where they are kept.

    Raises
    ------
    ConfigError
        If both are given, the environment variable is not set, or what is kept there holds no keys.
        A file that is not there yet holds none.

    """

    # _seen  what tells the file as it was read from the one that lies there now
    # _keys  by annotator, as of then
    def __init__(self, people: People) -> None:
        if people.keys_file is not None and people.keys_env is not None:
            raise ConfigError("people.keys_file and people.keys_env: give only one of them")
        self._people = people
        self._file = None if people.keys_file is None else Path(people.keys_file)
        self._seen: tuple[int, int, int] | None = None
        self._keys = self._read()

    def key_of(self, annotator: str) -> bytes | None:
        """Return the key of an annotator, None if there is none."""
        version = self._version()
        if version != self._seen:
            try:
                self._keys = self._read()
            except ConfigError:  # half of an edit, say: what was known stands until it is whole
                self._seen = version
        return self._keys.get(annotator)

    def make(self, annotator: str) -> None:
        """Make the key of an annotator who has none.

        Raises
        ------
        ConfigError
            If keys are in an environment variable, where none can be put.
        StateError
            If the file cannot be written.

        """
        if self.key_of(annotator) is not None:
            return
        if self._file is None:
            raise ConfigError(
                "people.keys_env: the environment variable that it names has no key for "
                f"{annotator!r}; add it, or name a file with keys_file"
            )
        with locked(self._file):
            keys = {name: key.hex() for name, key in self._read().items()}
            keys.setdefault(annotator, secrets.token_hex(_N_BYTES))
            write_snapshot(self._file, msgspec.json.encode(keys))
        self._keys = self._read()

    def _version(self) -> tuple[int, int, int] | None:
        return None if self._file is None else file_version(self._file)

    def _read(self) -> dict[str, bytes]:
        people, self._seen = self._people, self._version()
        if self._file is not None and self._seen is None:
            return {}
        text = kept_secret(
            "keys", people.keys_env, people.keys_file, section="people", longest=_LONGEST
        )
        where = f"people.keys_{'env' if self._file is None else 'file'}"
        try:
            keys = {name: bytes.fromhex(key) for name, key in _decode(text or "{}").items()}
        except (msgspec.DecodeError, ValueError):  # neither may be repeated: they hold secrets
            raise ConfigError(
                f'{where}: no keys found there, expected {{"NAME": "HEXADECIMAL DIGITS"}}'
            ) from None
        if any(len(key) < _LEAST_BYTES for key in keys.values()):
            raise ConfigError(
                f"{where}: a key found there is too short, expected at least {2 * _LEAST_BYTES} "
                "hexadecimal digits"
            )
        return keys


def signatures_of(
    config: WorkerConfig, *, make_for: Sequence[str] = (), knows_all: bool = True
) -> Signatures | None:
    """Return what signs and verifies the answers of a deployment, None if they are not signed.

    Parameters
    ----------
    config
        The configuration of the deployment.
    make_for
        Annotators who get a key if they have none.
    knows_all
        As in `Signatures`: not where one annotator answers, perhaps on a machine of their own.

    Raises
    ------
    ConfigError
        If the keys are not where the configuration says.

    """
    people = config.people
    if people.keys_file is None and people.keys_env is None:
        return None
    keys = AnswerKeys(people)
    try:
        for name in make_for:
            keys.make(name)
    except StateError as error:
        raise click.ClickException(str(error)) from None
    return Signatures(keys.key_of, supervisors=people.supervisors, knows_all=knows_all)
