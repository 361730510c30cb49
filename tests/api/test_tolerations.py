"""Which taints a toleration tolerates."""

import pytest

from longshore.api import Taint, Toleration

TAINT = Taint(key="dedicated", value="web", effect="NoSchedule")


@pytest.mark.parametrize(
    ("toleration", "tolerated"),
    [
        (Toleration(operator="Exists"), True),
        (Toleration(operator="Exists", effect="NoSchedule"), True),
        (Toleration(operator="Exists", effect="NoExecute"), False),
        (Toleration(key="dedicated", operator="Exists"), True),
        (Toleration(key="other", operator="Exists"), False),
        (Toleration(key="dedicated", operator="Equal", value="web"), True),
        (Toleration(key="dedicated", value="web"), True),
        (Toleration(key="dedicated", value="db"), False),
        (Toleration(key="dedicated", operator="Equal"), False),
        (Toleration(key="dedicated", operator="Equal", value="web", effect="PreferNoSchedule"), False),
        (Toleration(key="dedicated", operator="Gt", value="web"), False),
        (Toleration(key="dedicated", operator="Lt", value="web"), False),
        (Toleration(key="dedicated", operator="Like", value="web"), False),
        (Toleration(), False),
    ],
)
def test_a_toleration_matches_by_effect_key_operator_and_value(
    toleration: Toleration, tolerated: bool
) -> None:
    assert toleration.tolerates(TAINT) is tolerated


def test_no_value_tolerates_a_taint_without_one() -> None:
    assert Toleration(key="busy").tolerates(Taint(key="busy", effect="NoSchedule"))
