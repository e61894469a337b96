"""Several Bayesian linear or logistic models of the same targets, each with its own features.

An expert is a Gaussian process with random features: weights with a normal prior, and targets with
normal noise, or classes. All experts are kept in common arrays, so that a step costs a few calls,
however many there are. What the targets mean, and the weight of an expert, is decided by the
learner.

"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.linalg.blas import dger
from scipy.special import expit

from streamgp.base import Array, State
from streamgp.gp.arrays import enlarged

# --- Covariances of several linear models, as square roots that examples shrink in place.
#
# A covariance is `S S'` with a square root `S` that has no particular shape. Potter's update
# keeps it positive despite rounding, whereas the covariance itself becomes negative when noise is
# small. What the weights of the models mean is decided elsewhere.


class SquareRoots:
    """Covariances `S S'` of the weights of `m` linear models with `p` features each.

    Parameters
    ----------
    variances
        Prior variance of the weights of each model, shape (m,).
    n_features
        Number of features, p.

    Attributes
    ----------
    roots
        Square roots, shape (m, p, p).

    Examples
    --------
    A single weight of prior variance 1, observed with noise of variance 1:

    >>> weights = SquareRoots(np.array([1.0]), 1)
    >>> features = np.array([[1.0]])
    >>> image, variances = weights.look(features)
    >>> weights.shrink(image, weights.gain(image), variances, np.array([1.0]))
    >>> weights.look(features)[1]
    array([0.5])

    References
    ----------
    [^1]: Bierman, G.J., 1977. Factorization Methods for Discrete Sequential Estimation, §II.7
        (Potter's algorithm).

    """

    # _views  the roots one by one, transposed: in the order that BLAS updates in place
    def __init__(self, variances: Array, n_features: int) -> None:
        self._take(np.sqrt(variances)[:, None, None] * np.eye(n_features))

    def __getstate__(self) -> State:
        return {"roots": self.roots}

    def __setstate__(self, state: State) -> None:
        self._take(state["roots"])

    def become(self, roots: Array, variances: Array) -> None:  # noqa: ARG002 - for what fades
        """Set the covariances to `S S'` for square roots (m, p, p), given prior variances."""
        self._take(np.ascontiguousarray(roots))

    def look(self, features: Array) -> tuple[Array, Array]:
        """Return the image `S' phi` of features (m, p), same shape, and variances of `phi'w`, (m,).

        `Sigma phi = S S' phi` takes another product, and is needed only to learn.
        """
        image: Array = np.matmul(features[:, None, :], self.roots)[:, 0]
        return image, np.vecdot(image, image)

    def gain(self, image: Array) -> Array:
        """Return `Sigma phi` from the image of features, shape (m, p)."""
        gain: Array = np.matmul(self.roots, image[:, :, None])[:, :, 0]
        return gain

    def shrink(self, image: Array, gain: Array, variances: Array, precisions: Array) -> None:
        """Learn that `phi'w` was observed.

        Parameters
        ----------
        image, gain
            What `look` and `gain` returned.
        variances
            Variance of `phi'w`, shape (m,).
        precisions
            1 over the noise variance of the observation, shape (m,).

        """
        # Potter: S -= (S f) f' / (v + sqrt(n v)) with f = S' phi, noise n and v = f'f + n; here
        # multiplied by the precision, which may be 0.
        growth = 1.0 + precisions * variances
        steps = (precisions / (growth + np.sqrt(growth))).tolist()
        for view, f, h, step in zip(self._views, image, gain, steps, strict=True):
            dger(-step, f, h, a=view, overwrite_a=1)

    def _take(self, roots: Array) -> None:
        self.roots = roots
        self._views: Sequence[Array] = [root.T for root in roots]


# --- Covariances of several linear models that return to the prior, a little with each
# example.


class FadingCovariances:
    """Covariances `variance I - scale W` of the weights of `m` linear models.

    `W` is what has been learned. Mixing a covariance with the prior, `share Sigma + (1 - share)
    variance I`, multiplies `W` by the share: a single number. A square root would have to be
    rebuilt. It is not needed, since `Sigma` stays above `(1 - share) variance I`, far from what
    rounding could make negative.

    Parameters
    ----------
    variances
        Prior variance of the weights of each model, shape (m,).
    n_features
        Number of features of each.
    share
        Share that is kept when an example is learned.

    Examples
    --------
    A single weight of prior variance 1, observed with noise of variance 1, and half forgotten:

    >>> weights = FadingCovariances(np.array([1.0]), 1, share=0.5)
    >>> image, variances = weights.look(np.array([[1.0]]))
    >>> weights.shrink(image, weights.gain(image), variances, np.array([1.0]))
    >>> weights.look(np.array([[1.0]]))[1]
    array([0.75])

    """

    # _learned  W, shape (m, p, p)
    # _scale    the factor by which it is multiplied
    # _views    W by model, transposed: in the order that BLAS updates in place
    def __init__(self, variances: Array, n_features: int, share: float) -> None:
        self._share = share
        self._variances = variances
        self._scale = 1.0
        self._take(np.zeros((len(variances), n_features, n_features)))

    def __getstate__(self) -> State:
        return {
            "share": self._share,
            "variances": self._variances,
            "scale": self._scale,
            "learned": self._learned,
        }

    def __setstate__(self, state: State) -> None:
        self._share = state["share"]
        self._variances = state["variances"]
        self._scale = state["scale"]
        self._take(state["learned"])

    def become(self, roots: Array, variances: Array) -> None:
        """Set the covariances to `S S'` for square roots (m, p, p), given prior variances."""
        learned = -np.matmul(roots, roots.transpose(0, 2, 1))
        p = roots.shape[1]
        learned[:, np.arange(p), np.arange(p)] += variances[:, None]
        self._variances = variances
        self._scale = 1.0
        self._take(learned)

    def look(self, features: Array) -> tuple[Array, Array]:
        """Return the image `Sigma phi` of features, and variances of `phi'w`, (m,)."""
        image: Array = np.matmul(self._learned, features[:, :, None])[:, :, 0]
        image *= -self._scale
        image += self._variances[:, None] * features
        return image, np.vecdot(features, image)

    def gain(self, image: Array) -> Array:
        """Return `Sigma phi`, which the image of features is already."""
        return image

    def shrink(self, image: Array, gain: Array, variances: Array, precisions: Array) -> None:  # noqa: ARG002
        """Learn that `phi'w` was observed, as `SquareRoots` does, and forget a little."""
        steps = (precisions / (1.0 + precisions * variances) / self._scale).tolist()
        for view, g, step in zip(self._views, gain, steps, strict=True):
            dger(step, g, g, a=view, overwrite_a=1)
        self._scale *= self._share
        if self._scale < 1e-100:
            self._learned *= self._scale
            self._scale = 1.0

    def _take(self, learned: Array) -> None:
        self._learned = learned
        self._views: Sequence[Array] = [matrix.T for matrix in learned]


class Seen(NamedTuple):
    """A point as all experts see it; a tuple, which is created in half the time.

    Parameters
    ----------
    features
        Random features, shape (m, p).
    image
        Their image under the covariances of each expert, as these are stored, shape (m, p).
    means
        Latent means of the targets, shape (m, t).
    variances
        Latent variances, shape (m,).

    """

    features: Array
    image: Array
    means: Array
    variances: Array


class Experts:
    """`m` Bayesian linear models of `t` targets that share, within a model, one covariance.

    `y = phi(x)'w + noise` with weights `w ~ N(0, amplitude I)`, a posterior `N(theta, S S')`, and
    noise of variance `noise_variance`; constant in time and memory.

    Parameters
    ----------
    amplitudes
        Prior variance of the function of each expert, shape (m,), in units of y².
    noise_variances
        Variance of the observations around it, shape (m,).
    n_features
        Number of features of each expert.
    forgetting
        Share of the knowledge that is kept when an example is learned; the rest becomes the prior
        again. 1 forgets nothing.

    Attributes
    ----------
    amplitudes, noise_variances
        As given, or adopted since.
    theta
        Posterior means of the weights, shape (m, t, p).
    n
        Number of examples; with forgetting the sum of their shares.
    quadratic_forms
        Sum of `e e' / v` over examples, where `e` are the errors with which the targets were
        predicted before they were learned and `v` the variance of the prediction, shape (m, t, t).
    log_dets
        Sum of `log v`, shape (m,).

    Examples
    --------
    >>> experts = Experts(np.array([1.0]), np.array([1.0]), n_features=1)
    >>> experts.add_target()
    >>> seen = experts.see(np.array([[1.0]]))
    >>> experts.learn(seen, np.array([2.0]))
    >>> seen = experts.see(seen.features)
    >>> seen.means, seen.variances
    (array([[1.]]), array([0.5]))
    >>> experts.log_evidences()  # log N(2; 0, 2)
    array([-2.26551212])

    References
    ----------
    [^1]: Polyzos, K.D., Lu, Q. and Giannakis, G.B., 2023. Active labeling for online ensemble
        learning. Asilomar, Eqs. 5-9.

    """

    def __init__(
        self,
        amplitudes: Array,
        noise_variances: Array,
        n_features: int,
        forgetting: float = 1.0,
    ) -> None:
        m = len(amplitudes)
        self.amplitudes = amplitudes
        self.noise_variances = noise_variances
        self.forgetting = forgetting
        self.covariances = covariances_of(amplitudes, n_features, forgetting)
        self.theta = np.zeros((m, 0, n_features))
        self.n = 0.0
        self.quadratic_forms = np.zeros((m, 0, 0))
        self.log_dets = np.zeros(m)

    @property
    def n_targets(self) -> int:
        """Number of targets."""
        return self.theta.shape[1]

    def add_target(self) -> None:
        """Add a target that was 0 wherever something has been observed."""
        m, t, p = self.theta.shape
        self.theta = enlarged(self.theta, (m, t + 1, p))
        self.quadratic_forms = enlarged(self.quadratic_forms, (m, t + 1, t + 1))

    def see(self, features: Array) -> Seen:
        """Return what is known of a point with these features, shape (m, p)."""
        image, variances = self.covariances.look(features)
        return Seen(
            features=features,
            image=image,
            # Row by row: another target changes no bit of the earlier ones.
            means=np.vecdot(self.theta, features[:, None, :]),
            variances=variances,
        )

    def learn(self, seen: Seen, y: Array) -> None:
        """Learn targets (t,) of a point, seen since the last example was learned."""
        variances = seen.variances + self.noise_variances  # Eq. 6
        errors = y - seen.means
        shares = errors / variances[:, None]
        gain = self.covariances.gain(seen.image)
        self.theta += shares[:, :, None] * gain[:, None, :]  # Eq. 9
        self.covariances.shrink(seen.image, gain, seen.variances, 1.0 / self.noise_variances)
        share = self.forgetting
        if share < 1.0:
            self.quadratic_forms *= share
            self.log_dets *= share
        self.n = share * self.n + 1.0
        self.quadratic_forms += errors[:, :, None] * shares[:, None, :]
        self.log_dets += np.log(variances)
        if share < 1.0:
            # After the update, as for the covariances: the next prediction has already forgotten a
            # little. Dividing covariances by the share, as is usual elsewhere, makes them explode
            # where nothing is learned.
            self.theta *= math.sqrt(share)

    def forget_evidence(self) -> None:
        """Give all experts equal weight again."""
        self.n = 0.0
        self.quadratic_forms[:] = 0.0
        self.log_dets[:] = 0.0

    def log_evidences(self, directions: Array | None = None) -> Array:
        """Log density of targets, each example given those before it, in nats, shape (m,).

        Parameters
        ----------
        directions
            What is judged: `k` combinations of the targets, shape (t, k); None for each target by
            itself.

        """
        # The trace of U' M U for each matrix M of quadratic forms.
        m, t, _ = self.quadratic_forms.shape
        # Not the product of two identities, which takes longer than all else for 1000 targets.
        products = np.eye(t) if directions is None else directions @ directions.T
        k = t if directions is None else directions.shape[1]
        quadratic_forms = self.quadratic_forms.reshape(m, t * t) @ products.ravel()
        constant = self.n * math.log(2.0 * math.pi)
        evidences: Array = -0.5 * (quadratic_forms + k * (self.log_dets + constant))
        return evidences


def covariances_of(
    variances: Array, n_features: int, forgetting: float
) -> SquareRoots | FadingCovariances:
    """Return prior covariances of weights with the given forgetting."""
    if forgetting == 1.0:
        return SquareRoots(variances, n_features)
    return FadingCovariances(variances, n_features, forgetting)


# --- Several Bayesian logistic models of the same classes.
#
# One latent function per class and expert, `P(class | x) = sigmoid(phi(x)'w)`, each class against
# all others. After each label, a step of Laplace's method replaces the posterior of the weights by
# the normal distribution at its mode. Every class has a covariance of its own, since the curvature
# of the likelihood differs: the work is that of `Experts` times the number of classes.

# Newton's method: a few steps suffice, and one more for each factor of e in the variance. A root
# that is found stays, so that no class depends on another.
_MOST_STEPS = 60
_EXACT = 1e-13

_LEAST = 1e-300


class LogisticExperts:
    """`m` logistic models of `t` classes, each class against the others.

    Parameters
    ----------
    amplitudes
        Prior variance of the latent functions of each expert, shape (m,).
    n_features
        Number of features of each expert.
    forgetting
        Share of the knowledge that is kept when a label is learned; the rest becomes the prior
        again.

    Attributes
    ----------
    theta
        Modes of the weights, shape (t + 1, m, p). The last function belongs to no class: it has
        been told "no" at every label, as each class was before it appeared.
    log_likelihoods
        Sum of the log probabilities of the labels before they were learned, shape (m,).

    Examples
    --------
    >>> experts = LogisticExperts(np.array([4.0]), n_features=1)
    >>> experts.add_target()
    >>> features = np.array([[1.0]])
    >>> experts.learn(experts.see(features), np.array([1.0]))
    >>> experts.probabilities(experts.see(features))  # of the class, and of no class
    array([[0.68113089],
           [0.31886911]])

    References
    ----------
    [^1]: Lu, Q., Karanikolas, G.V. and Giannakis, G.B., 2022. Incremental ensemble Gaussian
        processes. IEEE TPAMI 45, §3.3.
    [^2]: Rasmussen, C.E. and Williams, C.K.I., 2006. Gaussian Processes for Machine Learning, §3.4.

    """

    # _covariances  of each function, in the order of theta
    def __init__(self, amplitudes: Array, n_features: int, forgetting: float = 1.0) -> None:
        self.amplitudes = amplitudes
        self.forgetting = forgetting
        self._covariances = [covariances_of(amplitudes, n_features, forgetting)]
        self.theta = np.zeros((1, len(amplitudes), n_features))
        self.log_likelihoods = np.zeros(len(amplitudes))

    @property
    def n_targets(self) -> int:
        """Number of classes."""
        return len(self.theta) - 1

    def add_target(self) -> None:
        """Add a class that has had no example."""
        self._covariances.insert(-1, copy.deepcopy(self._covariances[-1]))
        self.theta = np.concatenate([self.theta, self.theta[-1:]])

    def see(self, features: Array) -> Seen:
        """Return what is known of a point: images (t + 1, m, p), means and variances (t + 1, m)."""
        looks = [covariance.look(features) for covariance in self._covariances]
        return Seen(
            features=features,
            image=np.array([image for image, _ in looks]),
            means=np.vecdot(self.theta, features),
            variances=np.array([variances for _, variances in looks]),
        )

    def probabilities(self, seen: Seen) -> Array:
        """Probability of "yes" for each function, shape (t + 1, m)."""
        # MacKay's approximation of the mean of the sigmoid.
        scales = np.sqrt(1.0 + (math.pi / 8.0) * seen.variances)
        found: Array = expit(seen.means / scales)
        return found

    def learn(self, seen: Seen, y: Array) -> None:
        """Learn indicators (t,) of the class of a point, seen since the last label."""
        yes = self.probabilities(seen)[:-1]
        with_label = np.maximum(y @ yes, _LEAST) / np.maximum(yes.sum(axis=0), _LEAST)
        told = np.append(y, 0.0)[:, None]
        latent = _mode(seen.means, seen.variances, told)
        yes = expit(latent)
        steps, curvatures = told - yes, yes * (1.0 - yes)
        for i, (covariance, image) in enumerate(zip(self._covariances, seen.image, strict=True)):
            gain = covariance.gain(image)
            # The mode moves along the covariance of phi; its curvature is as much precision as an
            # observation with noise of variance 1 / curvature would bring.
            self.theta[i] += steps[i][:, None] * gain
            covariance.shrink(image, gain, seen.variances[i], curvatures[i])
        self.log_likelihoods = self.forgetting * self.log_likelihoods + np.log(with_label)
        self.theta *= math.sqrt(self.forgetting)


def _mode(means: Array, variances: Array, told: Array) -> Array:
    """Return the mode of a normal distribution times a sigmoid: the root of an equation.

    `f = mean + variance (told - sigmoid(f))`.
    """
    # From 0, where the sigmoid turns from convex to concave, no step passes the root. From the mean
    # steps may go to and fro for ever.
    latent = np.zeros_like(means)
    for _ in range(_MOST_STEPS):
        yes = expit(latent)
        excess = latent - means - variances * (told - yes)
        open_ = np.abs(excess) > _EXACT * (1.0 + variances + np.abs(means))
        if not open_.any():
            break
        newton = latent - excess / (1.0 + variances * yes * (1.0 - yes))
        latent = np.where(open_, newton, latent)
    return latent
