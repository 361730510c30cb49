"""Resource usage as a Beta distribution between 0 and 1, with a given mean and standard deviation.

The risk is the probability that usage exceeds a threshold. It is computed as the upper tail itself, not as
one minus the lower tail, so that small risks keep their digits. scipy provides the mathematics.
"""

import math
from typing import NamedTuple

import numpy as np

from longshore.agents.amounts import Amount
from longshore.errors import UserError

# A deviation below this share of the capacity counts as zero: the distribution is a step either way. The
# narrower it is, the longer scipy takes for its tail (0.1 ms at this limit), and below 5e-9 it returns NaN.
NEGLIGIBLE = 1e-6
_ABOVE_NOTHING = 1e-300
# A risk of exp(-_UNNOTICED) vanishes when it is subtracted from 1.
_UNNOTICED = 54 * math.log(2)


def require_scipy(plugin: str) -> None:
    """Fail when the plugin is created, not at the first pod, if scipy is missing."""
    try:
        import scipy.special  # noqa: F401
    except ImportError as error:
        raise UserError(f"{plugin} needs scipy: pip install 'longshore[agents]'") from error


def fit(mean: Amount, deviation: Amount) -> tuple[Amount, Amount]:
    """Estimate alpha and beta by the method of moments. The mean must be positive, the deviation possible."""
    spread = mean * (1 - mean) / (deviation * deviation) - 1
    return mean * spread, (1 - mean) * spread


def risk(mean: Amount, deviation: Amount, threshold: Amount) -> Amount:
    """Return the probability that usage exceeds the threshold. All values are shares of the capacity, 0 to 1.

    Without deviation the result is 0 or 1. A deviation too large for any Beta distribution is a risk of 1.
    """
    from scipy.special import betainc

    certain = (deviation < NEGLIGIBLE) | (mean <= 0)
    if not isinstance(mean, np.ndarray):
        if certain:
            return 1.0 if mean > max(threshold, 0.0) else 0.0
        if deviation * deviation >= mean * (1 - mean):
            return 1.0
        alpha, beta = fit(mean, deviation)
        return float(betainc(beta, alpha, 1 - threshold))
    fitted = ~certain & (deviation * deviation < mean * (1 - mean))
    risks = np.where(certain, (mean > threshold) & (mean > 0), 1.0)
    alpha, beta = fit(mean[fitted], deviation[fitted])
    beyond = 1 - (threshold[fitted] if np.ndim(threshold) else threshold)
    risks[fitted] = betainc(beta, alpha, beyond)
    return risks


def noticeable_risk(mean: Amount, deviation: Amount, threshold: float) -> Amount:
    """Return the risk, or 0 where one minus the risk rounds to 1, which saves most of the computation."""
    if not isinstance(mean, np.ndarray) or not 0 < threshold < 1:
        risks = risk(mean, deviation, threshold)
    else:
        near = _may_be_noticed(mean, deviation, threshold)
        risks = np.zeros(len(mean))
        risks[near] = risk(mean[near], deviation[near], threshold)
    return 1 - (1 - risks)


def _may_be_noticed(mean: Amount, deviation: Amount, threshold: float) -> Amount:
    """Return False where an upper bound of the tail is negligible.

    This is the Chernoff bound of a Beta distribution; its exponent is the divergence of mean and threshold.
    """
    within = np.clip(mean, _ABOVE_NOTHING, threshold)
    spread = within * (1 - within) / np.maximum(deviation * deviation, NEGLIGIBLE**2) - 1
    divergence = within * np.log(within / threshold) + (1 - within) * np.log((1 - within) / (1 - threshold))
    return (spread * divergence < _UNNOTICED) | (mean > threshold)


def log_density(at: Amount, alpha: float, beta: float) -> Amount:
    """Return the logarithm of the density; the powers would underflow. It may be infinite at 0 and 1."""
    from scipy.special import betaln, xlog1py, xlogy

    return xlogy(alpha - 1, at) + xlog1py(beta - 1, -at) - betaln(alpha, beta)


class Row(NamedTuple):
    """One point of the distribution. `residual` is the mean excess over the point, if it is exceeded."""

    at: float
    density: float
    cumulative: float
    residual: float


class Summary(NamedTuple):
    alpha: float
    beta: float
    mean: float
    variance: float
    moments: tuple[float, float, float]
    rows: tuple[Row, ...]


def summary(mean: float, deviation: float) -> Summary | None:
    """Describe the distribution in numbers, for people; None if no Beta distribution has these moments."""
    variance = deviation * deviation
    if deviation < NEGLIGIBLE or not 0 < variance < mean * (1 - mean):
        return None
    alpha, beta = fit(mean, deviation)
    total = alpha + beta
    first = alpha / total
    second = first * (alpha + 1) / (total + 1)
    third = second * (alpha + 2) / (total + 2)
    rows = tuple(_row(place / 20, alpha, beta) for place in range(21))
    return Summary(alpha, beta, mean, variance, (first, second, third), rows)


def _row(at: float, alpha: float, beta: float) -> Row:
    from scipy.special import betainc

    density = float(np.exp(log_density(at, alpha, beta)))
    beyond = float(betainc(beta, alpha, 1 - at))
    if beyond == 0:
        residual = 0.0
    elif np.isinf(density):
        residual = float("inf")
    else:
        residual = density / beyond * at * (1 - at) / (alpha + beta) + alpha / (alpha + beta) - at
    return Row(at, density, float(betainc(alpha, beta, at)), residual)
