"""How many examples of a law are drawn that costs more than others."""

from hypothesis import settings

BY_DAY = 25  # the examples of the profile "ci"


def examples(n: int) -> settings:
    """Return settings that draw so many by day, and as many times more as the profile does."""
    return settings(max_examples=max(1, n * settings.default.max_examples // BY_DAY))
