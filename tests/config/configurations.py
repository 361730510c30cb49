"""Helpers that read a configuration from its text without the head, and return the result or the problems."""

from textwrap import dedent

import pytest

from longshore.config import (
    Configuration,
    InvalidConfiguration,
    Loaded,
    PluginPoints,
    ProfileConfiguration,
    parse,
)

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
OURS: dict[str, PluginPoints] = {"Ours": {"filter", "score"}, "OurSort": {"queueSort"}, "OurBinder": {"bind"}}


def loaded(body: str) -> Loaded:
    return parse(HEAD + dedent(body), source="file.yaml", known=OURS)


def configuration(body: str) -> Configuration:
    return loaded(body).configuration


def profile(body: str) -> ProfileConfiguration:
    """Return the only profile, given the text of its fields."""
    (only,) = configuration(_as_profile(body)).profiles
    return only


def problems(body: str) -> tuple[str, ...]:
    with pytest.raises(InvalidConfiguration) as caught:
        loaded(body)
    assert all("\n" not in problem for problem in caught.value.problems)
    return caught.value.problems


def profile_problems(body: str) -> tuple[str, ...]:
    return tuple(problem.removeprefix("profiles[0].") for problem in problems(_as_profile(body)))


def _as_profile(body: str) -> str:
    lines = dedent(body).strip().splitlines()
    return "profiles:\n" + "\n".join(f"{'  ' if number else '- '}{line}" for number, line in enumerate(lines))
