"""Numbers of examples for laws that cost more than others."""

from hypothesis import settings

BY_DAY = 15  # the examples of the profile "ci"


def examples(n: int) -> settings:
    """Return settings that draw `n` examples for every 25 of the profile, but at least `n`."""
    return settings(max_examples=max(n, n * settings.default.max_examples // 25))
