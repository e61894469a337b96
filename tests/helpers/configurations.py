"""Configurations as texts."""

from streamgp.config.load import parse_worker
from streamgp.config.settings import Config, replay_part


def parse(text: str, *, source: str) -> Config:
    """Return the configuration of a replay."""
    return replay_part(parse_worker(text, source=source))
