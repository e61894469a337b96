"""Expectation propagation for labels with latent noise, one label after the other.

Assumed density filtering computes the factors of a label when it comes. A few factors of earlier
labels are then recomputed: with these replays the result is close to expectation propagation of
all.

"""

from __future__ import annotations

import numpy as np

from streamgp.base import Array
from streamgp.gp.latent_noise.batch_ep import Fixed, SiteProcess
from streamgp.gp.latent_noise.tilted_moments import sites, tilted


class OnlineLabels:
    """Decision function and log noise variance at the examples of one two-class task.

    Parameters
    ----------
    noise_mean
        Prior mean of the log noise variance; that of the decision function is 0.
    has_noise_process
        Whether the noise is a function; otherwise it is known, as in probit classification.
    n_replays
        Number of factors of earlier labels that are recomputed with each label, in turns.
    most
        Largest number of examples, None for any.

    Attributes
    ----------
    f, g
        Beliefs about the decision function, and about the log noise variance (None if known).

    Examples
    --------
    >>> labels = OnlineLabels(0.0, has_noise_process=False, n_replays=0)
    >>> labels.learn((np.empty(0), 1.0), None, 1.0)
    >>> labels.f.means
    array([0.56418958])

    References
    ----------
    [^1]: Minka, T.P., 2001. A family of algorithms for approximate Bayesian inference. PhD thesis,
        MIT, Ch. 3.

    """

    # _y     labels of the examples, -1 or 1
    # _turn  index of the next one to be replayed
    __slots__ = ("_n_replays", "_noise_mean", "_turn", "_y", "f", "g")

    def __init__(
        self,
        noise_mean: float,
        *,
        has_noise_process: bool,
        n_replays: int,
        most: int | None = None,
    ) -> None:
        self._noise_mean = noise_mean
        self._n_replays = n_replays
        self._turn = 0
        self._y: list[float] = []
        self.f = SiteProcess(0.0, most)
        self.g = SiteProcess(noise_mean, most) if has_noise_process else None

    @classmethod
    def of(
        cls, fixed: Fixed, y: Array, noise_mean: float, *, has_noise_process: bool, n_replays: int
    ) -> OnlineLabels:
        """Return the result for all labels at once, to continue from."""
        labels = cls(noise_mean, has_noise_process=has_noise_process, n_replays=n_replays)
        labels._y = y.tolist()
        labels.f = SiteProcess.of(fixed.f, 0.0, fixed.tau[0], fixed.nu[0])
        if has_noise_process:
            labels.g = SiteProcess.of(fixed.g, noise_mean, fixed.tau[1], fixed.nu[1])
        return labels

    @property
    def n(self) -> int:
        """Number of examples."""
        return len(self._y)

    def learn(
        self,
        by_f: tuple[Array, float],
        by_g: tuple[Array, float] | None,
        y: float,
        slot: int | None = None,
    ) -> None:
        """Learn a label, -1 or 1.

        Parameters
        ----------
        by_f, by_g
            Prior covariances of `f` and of `g` with those at the examples, shape (n,), and prior
            variances; the latter None if the noise is known.
        y
            The label.
        slot
            Index of an example that was divided out, and whose place this one takes.

        """
        self.f.append(*by_f, slot)
        if self.g is not None and by_g is not None:
            self.g.append(*by_g, slot)
        i = self.n if slot is None else slot
        self._y[i : i + 1] = [y]
        self._visit([i])
        self._replay(i)

    def relabel(self, i: int, y: float) -> None:
        """Change the label of example `i`: its factor is recomputed, without the old one."""
        self._y[i] = y
        self._visit([i])
        self._replay(i)

    def is_divisible(self, i: int) -> bool:
        """Whether a posterior exists without the factors of example `i`.

        It need not if there are factors of negative precision.
        """
        return self.f.is_divisible(i) and (self.g is None or self.g.is_divisible(i))

    def divide_out(self, i: int) -> None:
        """Remove the factors of example `i`, which must be divisible."""
        for process in self._processes():
            process.divide_out(i)

    def drop(self, i: int) -> None:
        """Forget an example that was divided out; later ones move up."""
        for process in self._processes():
            process.drop(i)
        del self._y[i]
        self._turn -= i < self._turn

    def mirrored(self) -> OnlineLabels:
        """Return the result for the opposite of all labels."""
        other = OnlineLabels(self._noise_mean, has_noise_process=False, n_replays=self._n_replays)
        other.f = self.f.mirrored()
        other.g = None if self.g is None else self.g.copy()
        other._y, other._turn = [-y for y in self._y], self._turn
        return other

    def tells(self) -> Array:
        """Information of each label about `f`, given all others, in nats, shape (n,).

        `log(v_without / v) / 2`, the information in its factor; negative if it widens `f`. The
        label itself is left out on purpose: without a wrong label much would change.
        """
        left: Array = np.maximum(1.0 - self.f.variances * self.f.tau, 1e-300)
        return -0.5 * np.log(left)

    def _processes(self) -> tuple[SiteProcess, ...]:
        return (self.f,) if self.g is None else (self.f, self.g)

    def _replay(self, latest: int) -> None:
        """Visit the examples whose turn it is; the latest one has just been visited."""
        m = min(self._n_replays, self.n - 1)
        turns: list[int] = []
        while len(turns) < m:
            i, self._turn = self._turn % self.n, (self._turn + 1) % self.n
            if i != latest:
                turns.append(i)
        if turns:
            self._visit(turns)

    def _visit(self, indices: list[int]) -> None:
        """Recompute the factors of some labels, given those of all others."""
        f, g, y = self.f, self.g, np.array([self._y[i] for i in indices])
        tau, nu = np.zeros((2, len(indices))), np.zeros((2, len(indices)))
        means, variances = np.zeros_like(tau), np.zeros_like(tau)
        means[1] = self._noise_mean
        for row, process in enumerate(self._processes()):
            tau[row], nu[row] = process.tau[indices], process.nu[indices]
            means[row], variances[row] = process.means[indices], process.variances[indices]
        left = 1.0 - variances * tau
        if not (left > 0.0).all():
            return
        means, variances = (means - variances * nu) / left, variances / left
        tau_new, nu_new, ok = sites(tilted(y, means, variances), means, variances)
        for j, i in enumerate(indices):
            if not ok[j]:
                continue
            f.update(i, float(tau_new[0, j] - tau[0, j]), float(nu_new[0, j] - nu[0, j]))
            if g is not None:
                g.update(i, float(tau_new[1, j] - tau[1, j]), float(nu_new[1, j] - nu[1, j]))
