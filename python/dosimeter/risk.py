"""Risk functions under the names that riskcal gave them: attack terms instead of epsilon.

The arguments are those of riskcal's functions for DP-SGD, without the knobs of a grid, because
there is none. Results are the safe ends: advantages are rounded up, false negative rates down,
and calibrated noise meets its target.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._names import SIGNED
from ._types import Lens
from .calibration import calibrate
from .claims import account
from .curves import tradeoff
from .errors import InvalidInput

if TYPE_CHECKING:
    import numpy
    from numpy.typing import ArrayLike, NDArray

__all__ = [
    "find_noise_multiplier_for_advantage",
    "find_noise_multiplier_for_epsilon_delta",
    "find_noise_multiplier_for_err_rates",
    "get_advantage_for_dpsgd",
    "get_bayes_risk_for_dpsgd",
    "get_beta_for_dpsgd",
]


def _run(noise_multiplier: float, sample_rate: float, num_steps: int) -> dict[str, Any]:
    return {
        "noise_multiplier": noise_multiplier,
        "sample_rate": sample_rate,
        "steps": num_steps,
    }


def get_advantage_for_dpsgd(
    noise_multiplier: float, sample_rate: float, num_steps: int, *, lens: Lens = SIGNED
) -> float:
    """The largest TPR - FPR of any attack, from above.

    >>> round(get_advantage_for_dpsgd(1.0, 0.01, 1000), 9)
    0.16101762
    """
    run = _run(noise_multiplier, sample_rate, num_steps)
    return account(run, lens=lens).select(quantity="advantage")[0].upper


def get_beta_for_dpsgd(
    noise_multiplier: float,
    sample_rate: float,
    num_steps: int,
    alpha: ArrayLike,
    *,
    lens: Lens = SIGNED,
) -> float | NDArray[numpy.float64]:
    """The false negative rate at each false positive rate ``alpha``, from below.

    >>> round(get_beta_for_dpsgd(1.0, 0.01, 1000, 0.01), 6)
    0.970861
    """
    import numpy

    rates = numpy.asarray(alpha, dtype=float)
    # At the ends the trade-off is what it is for any mechanism.
    betas = numpy.where(rates >= 1.0, 0.0, numpy.nan)
    inside = (rates > 0.0) & (rates < 1.0)
    if not (inside | (rates == 0.0) | (rates == 1.0)).all():
        raise InvalidInput("a false positive rate lies outside of [0, 1]")
    run = _run(noise_multiplier, sample_rate, num_steps)
    if inside.any():
        betas[inside] = tradeoff(run, fpr=rates[inside].ravel(), lens=lens).lower
    if (rates == 0.0).any():
        # What no attack without false positives can reach: the limit of the curve.
        betas[rates == 0.0] = 1.0 - account(run, fpr=1e-12, lens=lens).select(quantity="tpr")[0].upper
    return float(betas) if betas.ndim == 0 else betas


def get_bayes_risk_for_dpsgd(
    noise_multiplier: float,
    sample_rate: float,
    num_steps: int,
    prior: float = 0.5,
    *,
    lens: Lens = SIGNED,
) -> float:
    """The smallest error of an attacker who holds each record a member with ``prior``, from below.

    The minimum of (1 - prior) FPR + prior FNR over the trade-off curve: what is left of 1 beside the
    certified attack accuracy at this prior.

    >>> round(get_bayes_risk_for_dpsgd(1.0, 0.01, 1000), 6)
    0.419491
    """
    if not 0.0 < prior < 1.0:
        raise InvalidInput(f"prior {prior} is outside (0, 1)")
    run = _run(noise_multiplier, sample_rate, num_steps)
    asked = account(run, attack_prior=prior, lens=lens, quantity="attack-accuracy")
    return 1.0 - asked[0].upper


def find_noise_multiplier_for_advantage(
    advantage: float, sample_rate: float, num_steps: int, *, lens: Lens = SIGNED
) -> float:
    """The least noise with which no attack has more than this advantage.

    >>> round(find_noise_multiplier_for_advantage(0.16, 0.01, 1000), 6)
    1.004287
    """
    return calibrate(
        "noise_multiplier",
        target_advantage=advantage,
        sample_rate=sample_rate,
        steps=num_steps,
        lens=lens,
    ).solution


def find_noise_multiplier_for_err_rates(
    alpha: float, beta: float, sample_rate: float, num_steps: int, *, lens: Lens = SIGNED
) -> float:
    """The least noise with which an attack of false positive rate ``alpha`` misses at least
    ``beta`` of the members."""
    return calibrate(
        "noise_multiplier",
        target_tpr=1.0 - beta,
        fpr=alpha,
        sample_rate=sample_rate,
        steps=num_steps,
        lens=lens,
    ).solution


def find_noise_multiplier_for_epsilon_delta(
    epsilon: float, delta: float, sample_rate: float, num_steps: int, *, lens: Lens = SIGNED
) -> float:
    """The least noise with which epsilon at ``delta`` is at most this.

    >>> round(find_noise_multiplier_for_epsilon_delta(2.0, 1e-5, 0.01, 1000), 6)
    0.959102
    """
    return calibrate(
        "noise_multiplier",
        target_epsilon=epsilon,
        delta=delta,
        sample_rate=sample_rate,
        steps=num_steps,
        lens=lens,
    ).solution
