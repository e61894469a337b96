"""Secrets, read from where they are kept: an environment variable or a file, nowhere else.

No message repeats a secret, nor the value of a setting that should name such a variable or file:
that is where users paste secrets by mistake.

"""

from __future__ import annotations

import os
from pathlib import Path

from streamgp.config.validation import ConfigError

_LONGEST = 65536
_SECTION = "broker.security"


def kept_secret(
    name: str,
    variable: str | None,
    file: str | None,
    *,
    section: str = _SECTION,
    longest: int = _LONGEST,
) -> str | None:
    """Return a secret from where it is kept, or None if it is kept nowhere.

    Parameters
    ----------
    file
        File that holds it, or None; one line break at its end is not part of the secret.

    Raises
    ------
    ConfigError
        If it is missing or cannot be read.

    Examples
    --------
    >>> import os
    >>> os.environ["KAFKA_PASSWORD"] = "open sesame"
    >>> kept_secret("password", "KAFKA_PASSWORD", None)
    'open sesame'

    """
    if variable is not None:
        secret = os.environ.get(variable)
        if not secret:
            how = "empty" if secret == "" else "not set"
            raise ConfigError(
                f"{section}.{name}_env: the environment variable that it names is {how}; set it"
            )
        return secret
    if file is None:
        return None
    where = f"{section}.{name}_file"
    try:
        with Path(file).open("rb") as opened:
            data = opened.read(longest + 1)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "it is not a path"
        raise ConfigError(f"{where}: the file that it names cannot be read: {why}") from None
    data = data.removesuffix(b"\n").removesuffix(b"\r")
    if not data:
        raise ConfigError(f"{where}: the file that it names is empty")
    if len(data) > longest:
        raise ConfigError(f"{where}: the file that it names has more than {longest} bytes")
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise ConfigError(f"{where}: the file that it names is not UTF-8 text") from None


def readable(name: str, file: str | None) -> None:
    """Raise ConfigError if a file of [broker.security] cannot be read."""
    if file is None:
        return
    try:
        with Path(file).open("rb"):
            pass
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "it is not a path"
        raise ConfigError(f"{_SECTION}.{name} = {file!r} cannot be read: {why}") from None
