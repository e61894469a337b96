"""Numbers of examples for laws that cost more than others."""

from hypothesis import settings

BY_DAY = 15  # the examples of the profile "ci"


def examples(n: int) -> settings:
    """Return settings that draw `n` examples by day, more by night, fewer with `-m quick`."""
    drawn = settings.default.max_examples
    if drawn < BY_DAY:
        return settings(max_examples=max(1, n * drawn // BY_DAY))
    return settings(max_examples=max(n, n * drawn // 25))
