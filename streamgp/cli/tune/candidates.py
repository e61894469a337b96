"""Which hyper-parameters are tried: all pairs of the values given, or some drawn between them."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

import click
from msgspec.structs import replace as changed

from streamgp.cli.configuration.settings import Config, Learner, resolved

MOST = 200
"""Number of configurations at most."""

# What a length scale is multiplied by where no others are named.
_FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)
_NOISE_VARIANCES = (0.02, 0.1, 0.25, 0.5, 1.0)


def candidates(
    config: Config,
    default_scale: float,
    *,
    length_scales: Sequence[float] = (),
    noise_variances: Sequence[float] = (),
    n_random: int | None = None,
) -> list[Learner]:
    """Return the learners to try; the first is that of the configuration.

    Parameters
    ----------
    config
        The configuration; its seed is that of the draws.
    default_scale
        What the length scale is that a learner takes if it is given none.
    length_scales, noise_variances
        Values to try; without any, some around those of the configuration.
    n_random
        Number of pairs to draw, evenly in their logarithms, between the smallest and the largest
        values; None for all pairs.

    Raises
    ------
    click.UsageError
        If there would be too many.

    Examples
    --------
    >>> tried = candidates(Config(), 2.4, length_scales=[1.0], noise_variances=[0.1, 0.5])
    >>> [(learner.length_scale, learner.noise_variance) for learner in tried]
    [(None, 0.5), (1.0, 0.1), (1.0, 0.5)]

    """
    given = resolved(config).learner
    scales: Sequence[float | None] = length_scales or _around(given.length_scale, default_scale)
    noises = noise_variances or _NOISE_VARIANCES
    if n_random is None:
        if len(scales) * len(noises) > MOST:
            raise click.UsageError(
                f"{len(scales)} length scales and {len(noises)} noise variances are "
                f"{len(scales) * len(noises)} pairs, expected {MOST} at most; name fewer, or draw "
                "some with --random N"
            )
        pairs = [(scale, noise) for scale in scales for noise in noises]
    else:
        numbers = [default_scale if scale is None else scale for scale in scales]
        draw = random.Random(config.seed)
        pairs = [(_between(numbers, draw), _between(noises, draw)) for _ in range(n_random)]
    tried = [given, *(changed(given, length_scale=s, noise_variance=v) for s, v in pairs)]
    return [learner for i, learner in enumerate(tried) if learner not in tried[:i]]


def rounded(value: float) -> float:
    """Return a value with three digits, as people like to read and write it."""
    return float(f"{value:.3g}")


def _around(given: float | None, default: float) -> list[float | None]:
    middle = default if given is None else given
    # What is left out of a configuration grows with the number of features: better kept so.
    return [given if factor == 1.0 else rounded(factor * middle) for factor in _FACTORS]


def _between(values: Sequence[float], draw: random.Random) -> float:
    """Draw a value, evenly in its logarithm."""
    return rounded(math.exp(draw.uniform(math.log(min(values)), math.log(max(values)))))
