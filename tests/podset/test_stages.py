"""The stages of a pod: docs/podsets.md agrees with the code."""

import re
from pathlib import Path

import pytest

from longshore.podset.stages import Stage, Transition

PAGE = (Path(__file__).parents[2] / "docs" / "podsets.md").read_text()
SECTION = PAGE.partition("## What happens to a pod of a set?\n")[2].partition("\n## ")[0]


def rows(header: str) -> list[list[str]]:
    """Return the cells of the table with this header."""
    lines = SECTION.partition(header)[2].partition("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_the_page_lists_every_stage() -> None:
    assert [stage for stage, _ in rows("| stage | meaning |")] == [stage.value for stage in Stage]


def test_the_page_lists_every_event_and_the_stage_after_it() -> None:
    told = [
        (
            meaning,
            {stage.value for stage in Stage} if stages == "any" else set(stages.split(", ")),
            leads_to,
        )
        for meaning, stages, leads_to in rows("| what happens to the pod | in which stages | next stage |")
    ]
    assert told == [
        (cause.meaning, {stage.value for stage in cause.stages}, cause.leads_to.value) for cause in Transition
    ]


def test_the_diagram_has_every_stage_and_only_ways_that_exist() -> None:
    arrows = re.findall(r"^ +(\w+) --> (\w+)", SECTION, re.MULTILINE)
    assert {name for arrow in arrows for name in arrow} == {stage.value for stage in Stage}
    ways = {(stage.value, cause.leads_to.value) for cause in Transition for stage in cause.stages}
    assert set(arrows) <= ways


@pytest.mark.parametrize("stage", Stage)
def test_every_stage_can_be_reached_and_left(stage: Stage) -> None:
    others = [each for each in Stage if each is not stage]
    assert any(cause.leads_to is stage and set(others) & set(cause.stages) for cause in Transition)
    assert any(stage in cause.stages and cause.leads_to in others for cause in Transition)
