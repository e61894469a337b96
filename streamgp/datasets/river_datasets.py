"""Data sets in River's format: a recorded sensor log, synthetic classes."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
from river.datasets import base

from streamgp.base import FeatureName
from streamgp.common.counter_rng import check_seed
from streamgp.common.validation import check_number, check_positive, check_whole
from streamgp.datasets.readings import wifi_readings

__all__ = ["GaussianClasses", "WiFiRooms"]

# Jittered grid positions of the six class means, in units of the grid step.
_MEANS = ((0.0, 0.0), (1.05, 0.15), (2.0, -0.1), (0.1, 1.0), (0.95, 1.15), (2.1, 0.95))
_DISTANCE = 5.0
# All points are drawn at once: this many take a few hundred megabytes.
_MOST_PER_CLASS = 1_000_000


class WiFiRooms(base.Dataset):
    """Room that a phone is in, one of four, from the signal strengths of seven Wi-Fi access points.

    2000 readings in recorded order, 500 in each room, one room after the other: new classes keep
    appearing. Signal strengths are in dBm. Licence: CC BY 4.0.

    Examples
    --------
    >>> from streamgp.datasets import WiFiRooms
    >>> x, room = next(iter(WiFiRooms()))
    >>> x["wap1"], room
    (-64.0, 1)

    References
    ----------
    [^1]: Bhatt, R., 2017. Wireless Indoor Localization. UCI Machine Learning Repository.
        https://doi.org/10.24432/C51880

    """

    def __init__(self) -> None:
        super().__init__(  # type: ignore[no-untyped-call]
            task=base.MULTI_CLF, n_features=7, n_samples=2000, n_classes=4
        )

    def __iter__(self) -> Iterator[tuple[dict[FeatureName, Any], int]]:
        return wifi_readings()


class GaussianClasses(base.SyntheticDataset):
    """Six overlapping classes in the plane, as in the synthetic experiment of the ISGP paper.

    Normal distributions with equal standard deviation around a jittered 3 x 2 grid of step 5.

    Parameters
    ----------
    n_per_class
        Number of examples of each class.
    std
        Standard deviation of each coordinate.
    order
        `random`, or `sequential`: class after class, with the classes in random order.
    seed
        Seed of points and order. None draws one.

    Examples
    --------
    >>> from streamgp.datasets import GaussianClasses
    >>> for x, y in GaussianClasses(seed=1).take(2):
    ...     print(x, y)
    {'x1': 12.6..., 'x2': 2.7...} 5
    {'x1': 6.2..., 'x2': 3.7...} 4

    References
    ----------
    [^1]: Bontempelli, A., Teso, S., Giunchiglia, F. and Passerini, A., 2020. Learning in the wild
        with incremental skeptical Gaussian processes. IJCAI, Sec. 5.1.

    """

    def __init__(
        self,
        n_per_class: int = 100,
        std: float = 1.5,
        order: Literal["random", "sequential"] = "random",
        seed: int | None = None,
    ) -> None:
        if order not in ("random", "sequential"):
            raise ValueError(f"order must be 'random' or 'sequential', got {order!r}")
        n_per_class = check_whole("n_per_class", n_per_class, 1, _MOST_PER_CLASS)
        check_positive("std", std)
        check_seed(seed)
        if seed is not None:
            check_number("seed", seed, "at least 0", lambda number: number >= 0)
        n_classes = len(_MEANS)
        super().__init__(  # type: ignore[no-untyped-call]
            task=base.MULTI_CLF,
            n_features=2,
            n_samples=n_classes * n_per_class,
            n_classes=n_classes,
        )
        self.n_per_class = n_per_class
        self.std = std
        self.order = order
        self.seed = seed
        self._seed = secrets.randbits(32) if seed is None else seed

    def __iter__(self) -> Iterator[tuple[dict[FeatureName, Any], int]]:
        rng = np.random.default_rng(self._seed)
        labels = np.repeat(np.arange(len(_MEANS)), self.n_per_class)
        points = rng.normal(np.array(_MEANS)[labels] * _DISTANCE, self.std)
        if self.order == "random":
            order: Any = rng.permutation(len(labels))
        else:
            rank = rng.permutation(len(_MEANS))
            order = np.argsort(rank[labels], kind="stable")
        for i in order.tolist():
            x1, x2 = points[i].tolist()
            yield {"x1": x1, "x2": x2}, int(labels[i])
