"""Waits grow, are random, and respect what the server asked for."""

from longshore.kube.backoff import JitteredBackoff


def test_waits_double_up_to_the_limit_and_none_is_zero() -> None:
    backoff = JitteredBackoff(first=0.2, most=1.0)
    waits = [backoff.wait() for _ in range(6)]
    for wait, full in zip(waits, [0.2, 0.4, 0.8, 1.0, 1.0, 1.0], strict=True):
        assert full / 2 <= wait <= full


def test_a_reset_starts_over() -> None:
    backoff = JitteredBackoff(first=0.2, most=10.0)
    for _ in range(5):
        backoff.wait()
    backoff.reset()
    assert backoff.wait() <= 0.2


def test_a_wait_that_the_server_asked_for_is_never_shortened() -> None:
    assert all(7.0 <= JitteredBackoff().wait(at_least=7.0) <= 7.0 * 1.25 for _ in range(100))


def test_a_server_that_asks_for_no_wait_is_not_overloaded() -> None:
    assert JitteredBackoff(first=0.2).wait(at_least=0.0) >= 0.1


def test_clients_that_fail_together_do_not_retry_together() -> None:
    assert len({JitteredBackoff().wait() for _ in range(50)}) > 40
