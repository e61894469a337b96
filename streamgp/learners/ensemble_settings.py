"""How an ensemble was built: its arguments, checked, and the kernels they stand for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from streamgp.arguments import check_forgetting, check_positive, check_whole
from streamgp.base import Preset, check_preset
from streamgp.draws import check_seed
from streamgp.gp.evidence_of_experts import MIN_NOISE_SHARE
from streamgp.kernels import Kernel, SquaredExponential

# Length scales of the presets: seven in units of the median distance, half a decade apart, and the
# paper's (§IV).
_DEFAULT = tuple(10.0 ** (c / 2.0) for c in range(-3, 4))
_PAPER = tuple(10.0**c for c in range(-4, 7))

N_INITIAL = 10
"""Number of labels at the first fit, the smallest initial set of the paper."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EnsembleSettings:
    """The arguments of an ensemble, under their names.

    Parameters
    ----------
    amplitude
        Variance of the kernels that stand for None.
    least_noise_share
        Least noise variance that a fit may find, as a share of the variance of the targets.

    Raises
    ------
    TypeError
        If a number is none, or the seed no whole one.
    ValueError
        If an argument is out of range, or the preset is not known.

    """

    kernels: Sequence[Kernel] | None
    n_features: int
    forgetting: float
    refit: bool
    preset: Preset
    seed: int | None
    noise_variance: float
    n_initial: int
    amplitude: float = 1.0
    least_noise_share: float = MIN_NOISE_SHARE

    def __post_init__(self) -> None:
        check_preset(self.preset)
        check_whole("n_features", self.n_features, 1)
        check_forgetting(self.forgetting)
        check_positive("noise_variance", self.noise_variance)
        check_whole("n_initial", self.n_initial, 2)
        check_seed(self.seed)

    @property
    def has_unit(self) -> bool:
        """Whether length scales are in units of distances that examples have."""
        return self.kernels is None and self.preset == "default"

    @property
    def is_paper(self) -> bool:
        """Whether hyper-parameters are fitted once, and weights are never set anew."""
        return self.preset == "paper"

    def kernels_in_use(self) -> list[Kernel]:
        """Return the kernels, or what stands for None."""
        if self.kernels is not None:
            return list(self.kernels)
        scales = _PAPER if self.is_paper else _DEFAULT
        return [SquaredExponential(scale, self.amplitude) for scale in scales]
