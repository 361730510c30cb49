"""The Beta distribution, compared with numbers that were computed with 40 digits."""

import math
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.agents.one_agent import golden

from longshore.agents import beta

VECTORS = golden()["safe_single_resource"]
NAMES = [vector["name"] for vector in VECTORS]


@pytest.mark.parametrize("vector", VECTORS, ids=NAMES)
def test_the_risk_equals_that_of_the_golden_file(vector: dict[str, Any]) -> None:
    found = beta.risk(vector["mu"], vector["sigma"], vector["SAFEUTILIZATION"] / 100)
    assert found == pytest.approx(vector["risk"], abs=1e-9)


def test_the_parameters_equal_those_of_the_golden_file() -> None:
    fitted = [vector for vector in VECTORS if vector["alpha"] is not None]
    assert len(fitted) > 10
    for vector in fitted:
        expected = (vector["alpha"], vector["beta"])
        assert beta.fit(vector["mu"], vector["sigma"]) == pytest.approx(expected, rel=1e-8)


def test_many_at_once_equal_one_by_one() -> None:
    means = np.array([vector["mu"] for vector in VECTORS])
    deviations = np.array([vector["sigma"] for vector in VECTORS])
    alone = [beta.risk(mean, deviation, 0.9) for mean, deviation in zip(means, deviations, strict=True)]
    assert beta.risk(means, deviations, 0.9).tolist() == alone


SHARES = st.floats(0, 1) | st.sampled_from([0.0, 1e-12, 0.3, 0.9, 1.0])


@given(means=st.lists(SHARES, min_size=1), deviation=SHARES, threshold=SHARES)
@example(means=[1e-12], deviation=2e-6, threshold=0.9)
def test_a_risk_that_is_not_computed_would_round_to_0(
    means: list[float], deviation: float, threshold: float
) -> None:
    many, deviations = np.array(means), np.full(len(means), deviation)
    expected = 1 - (1 - beta.risk(many, deviations, threshold))
    assert beta.noticeable_risk(many, deviations, threshold).tolist() == expected.tolist()
    alone = [beta.noticeable_risk(mean, deviation, threshold) for mean in means]
    assert alone == expected.tolist()


def test_far_from_the_threshold_no_risk_is_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[float] = []
    worked_out = beta.risk

    def noted(mean: Any, deviation: Any, threshold: float) -> Any:
        asked.extend(mean.tolist())
        return worked_out(mean, deviation, threshold)

    monkeypatch.setattr(beta, "risk", noted)
    beta.noticeable_risk(np.array([0.1, 0.5, 0.8, 0.95]), np.full(4, 0.04), 0.9)
    assert asked == [0.8, 0.95]


@pytest.mark.parametrize(
    ("mean", "deviation", "expected"),
    [
        # By numerical integration. If powers are not computed with logarithms, the result is 0 or 1.
        (0.899, 0.001, 0.158653455),
        (0.8995, 0.001, 0.309316965),
        (0.9, 0.01, 0.511829536),
        (0.901, 0.0001, 1.0),
    ],
)
def test_narrow_distributions_have_no_steps(mean: float, deviation: float, expected: float) -> None:
    assert beta.risk(mean, deviation, 0.9) == pytest.approx(expected, abs=1e-6)


def test_a_very_small_risk_keeps_its_digits() -> None:
    # The density is 200 (1 - x) ** 199.
    tail = beta.risk(1 / 201, math.sqrt(200 / 201**2 / 202), 0.5)
    assert tail == pytest.approx(0.5**200, rel=1e-6)


@pytest.mark.parametrize("threshold", [0.05, 0.5, 0.9, 0.99])
@pytest.mark.parametrize("apart", [-6.0, -1.0, -0.01, 0.0, 0.5, 3.0])
def test_very_small_deviations_count_as_0_or_have_an_exact_risk(threshold: float, apart: float) -> None:
    """Such a narrow distribution is a normal one except for its skewness (Edgeworth expansion)."""
    deviations = 10.0 ** np.arange(-14, -4.5, 0.125)
    means = threshold + apart * deviations
    found = beta.risk(means, deviations, threshold)
    skewness = 2 * (1 - 2 * means) * deviations / (means * (1 - means))
    normal = NormalDist()
    narrow = normal.cdf(apart) + skewness / 6 * (apart**2 - 1) * normal.pdf(apart)
    expected = np.where(deviations < beta.NEGLIGIBLE, means > threshold, narrow)
    assert found.tolist() == pytest.approx(expected.tolist(), abs=1e-6)
    alone = [beta.risk(*each, threshold) for each in zip(means.tolist(), deviations.tolist(), strict=True)]
    assert alone == found.tolist()


@pytest.mark.parametrize(
    ("mean", "expected"), [(0.5, 0.0), (0.9, 0.0), (np.nextafter(0.9, 1), 1.0), (0.0, 0.0)]
)
def test_without_deviation_the_risk_is_0_or_1(mean: float, expected: float) -> None:
    assert beta.risk(mean, 0.0, 0.9) == expected


def test_an_impossible_deviation_is_a_risk_of_1() -> None:
    assert beta.risk(0.5, 0.5, 0.9) == 1.0
    assert beta.risk(1.0, 0.01, 0.9) == 1.0


def test_no_usage_is_no_risk_even_with_a_threshold_of_0() -> None:
    assert beta.risk(0.0, 0.1, 0.0) == 0.0


def test_a_uniform_distribution_is_summarized() -> None:
    found = beta.summary(0.5, math.sqrt(1 / 12))
    assert found is not None
    assert (found.alpha, found.beta) == pytest.approx((1, 1))
    assert found.moments == pytest.approx((1 / 2, 1 / 3, 1 / 4))
    assert [row.at for row in found.rows] == pytest.approx([place / 20 for place in range(21)])
    for row in found.rows[:-1]:
        assert (row.density, row.cumulative) == pytest.approx((1, row.at))
        # Values above x lie between x and 1; their mean is halfway.
        assert row.residual == pytest.approx((1 - row.at) / 2)
    assert found.rows[-1].residual == 0


def test_a_distribution_that_is_infinite_at_its_ends_is_summarized() -> None:
    found = beta.summary(0.5, 0.4)
    assert found is not None
    assert found.rows[0].density == math.inf
    assert found.rows[0].residual == math.inf
    assert found.rows[-1].residual == 0


def test_without_a_distribution_there_is_no_summary() -> None:
    assert beta.summary(0.5, 0.0) is None
    assert beta.summary(0.5, 0.5) is None
