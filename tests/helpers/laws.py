"""How many examples of a law are drawn that costs more than others."""

from hypothesis import settings

BY_DAY = 15  # the examples of the profile "ci"


def examples(n: int) -> settings:
    """Return settings that draw so many by day, and more by night, for which 25 by day count."""
    return settings(max_examples=max(n, n * settings.default.max_examples // 25))
