"""The pages in docs/agents/ are correct: agents compute the examples, and all arguments are listed."""

import importlib
import re
from typing import Any

import msgspec
import numpy as np
import pytest
import yaml
from tests.pages import ROOT, Page

from longshore.agents import beta
from longshore.agents.annotations import load, read_load
from longshore.agents.reward.learning import RewardController
from longshore.api import Change
from longshore.cluster import PodInfo
from longshore.config import default_configuration
from longshore.config.registry import register
from longshore.config.setup import enable
from longshore.engine import Engine
from longshore.engine.answers.explanation import Explanation, explain
from longshore.serve.extender.agent_choice import choose, known_agents
from longshore.testing import NodeBuilder, PodBuilder, node, pod

AGENTS = {name: point.value for name, point in known_agents().items()}
PAGES = {
    file.stem: Page(f"agents/{file.name}", varying=()) for file in sorted((ROOT / "docs/agents").iterdir())
}


def plugins_of(agent: str) -> dict[str, Any]:
    [chosen] = choose([agent])
    return {plugin.name: plugin.thing for plugin in chosen.plugins}


def a_pod(said: dict[str, Any], name: str = "web") -> PodBuilder:
    amounts = {key: value for key, value in said.items() if key in ("cpu", "memory")}
    return pod(name).requests(**amounts).limits(**said.get("limits", {})).labels(**said.get("labels", {}))


def a_node(said: dict[str, Any]) -> NodeBuilder:
    made = node(said["name"]).allocatable(**said.get("allocatable", {}))
    return made.annotations(**said.get("annotations", {}))


def engine_for(plugin: Any, example: dict[str, Any], args: dict[str, Any] | None) -> Engine:
    """Return an engine with the nodes of an example, and with the pods that run or failed there."""
    registered = register(plugin)
    configuration = enable(default_configuration(), [registered])
    [profile] = configuration.profiles
    profile = msgspec.structs.replace(profile, args={**profile.args, registered.name: args or {}})
    configuration = msgspec.structs.replace(configuration, profiles=(profile,))
    engine = Engine(configuration, plugins={registered.name: registered})
    read_load(engine.cluster)
    for said in example["nodes"]:
        engine.receive(Change(None, a_node(said)), now=0.0)
        if "runs" in said:
            there = a_pod(said["runs"], f"on-{said['name']}").on(said["name"])
            engine.receive(Change(None, there), now=0.0)
    for type_, failures in example.get("failures", {}).items():
        [controller] = [each for each in engine.controllers if isinstance(each, RewardController)]
        for name, count in failures.items():
            for _ in range(count):
                controller.rewards.reward(type_, name, 0.0, time=engine.epoch)
    return engine


def ask(plugin: Any, example: dict[str, Any], args: dict[str, Any] | None = None) -> Explanation:
    """Return the answers of the plugin for the pod of an example on its nodes."""
    chooser = engine_for(plugin, example, args).chooser("longshore")
    return explain(chooser, PodInfo.of(a_pod(example["pod"])))


def example_of(page: Page) -> dict[str, Any]:
    [block] = page.blocks("yaml")
    loaded: dict[str, Any] = yaml.safe_load(block)
    return loaded


def headings(page: Page) -> list[str]:
    [line] = [line for line in page.text.splitlines() if line.startswith("| node |")]
    return [cell.strip() for cell in line.split("|")[1:-1]]


def test_every_agent_has_a_page() -> None:
    assert PAGES.keys() == AGENTS.keys()


@pytest.mark.parametrize("agent", PAGES)
def test_the_scores_of_the_example_are_those_of_the_agent(agent: str) -> None:
    page, plugins = PAGES[agent], plugins_of(agent)
    example, columns = example_of(page), headings(page)
    named = {heading: heading.strip("`") for heading in columns if heading.startswith("`")}
    assert {name.partition(" ")[0] for name in named.values()} == plugins.keys()
    for heading, name in named.items():
        plugin, _, policy = name.partition(" ")
        said = ask(plugins[plugin], example, {"policyObjective": policy} if policy else None)
        assert not said.error
        for row in page.rows("node"):
            shown = dict(zip(columns, row, strict=True))
            scores = said.scores.get(shown["node"], {})
            assert str(scores.get(plugin, "-")) == shown[heading], (heading, row)


@pytest.mark.parametrize("agent", [name for name, page in PAGES.items() if "| filter |" in page.text])
def test_the_answers_of_the_filter_in_the_example_are_those_of_the_agent(agent: str) -> None:
    page, columns = PAGES[agent], headings(PAGES[agent])
    said = ask(next(iter(plugins_of(agent).values())), example_of(page))
    for row in page.rows("node"):
        shown = dict(zip(columns, row, strict=True))
        rejected = said.rejected.get(shown["node"])
        assert shown["filter"] == ("; ".join(rejected.reasons) if rejected else "accepted")


def test_adaptive_bin_packing_changes_its_scores_as_shown() -> None:
    page = PAGES["pigeon"]
    nodes = [said["name"] for said in example_of(page)["nodes"]]
    pods = [row[0] for row in page.rows("pod")]
    engine = engine_for(plugins_of("pigeon")["PigeonHoling"], example_of(page), {"numResources": 1})
    chooser = engine.chooser("longshore")
    for asked, row in zip(pods, page.rows("pod"), strict=True):
        said = explain(chooser, PodInfo.of(pod("web").requests(cpu=asked)))
        assert [str(said.scores[name]["PigeonHoling"]) for name in nodes] == row[1:]


def test_shares_and_risks_of_safe_are_those_of_the_annotations() -> None:
    page, columns = PAGES["safe"], headings(PAGES["safe"])
    example = example_of(page)
    requests = PodInfo.of(a_pod(example["pod"])).requests
    nodes = {said["name"]: a_node(said) for said in example["nodes"]}
    for row in page.rows("node"):
        shown = dict(zip(columns, row, strict=True))
        measured = load(nodes[shown["node"]])
        for resource, capacity in (("cpu", 8000), ("memory", 16 << 30)):
            mu = (measured[f"{resource}/mean"][0] + requests[resource]) / capacity
            sigma = measured[f"{resource}/std"][0] / capacity
            risk = float(np.asarray(beta.risk(mu, sigma, 0.9)))
            assert shown[f"risk of {resource}"] == f"{risk:.4f}"
            if resource == "cpu":
                assert shown["mu, sigma of cpu"] == f"{mu:.4f}, {sigma:.4f}"


@pytest.mark.parametrize("agent", PAGES)
def test_arguments_and_variables_are_those_of_the_plugin(agent: str) -> None:
    """The table has every argument of a plugin, and no other."""
    described: set[str] = set()
    variables: set[str] = set()
    if "| argument |" in PAGES[agent].text:
        for row in PAGES[agent].rows("argument"):
            described |= {name.partition(".")[0] for name in re.findall(r"`([\w.]+)`", row[0])}
            if "| variable of the extender |" in PAGES[agent].text:
                variables |= set(re.findall(r"`([A-Z_]+)`", row[1]))
    known: set[str] = set()
    read = Watched()
    module = importlib.import_module(AGENTS[agent])
    for name, plugin in plugins_of(agent).items():
        known |= set(arguments_of(module, name))
        plugin.environment(read)
    assert described == known
    assert variables == read.names


class Watched(dict[str, str]):
    """An environment that records which variables are read."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()

    def get(self, key: str, default: Any = None) -> Any:
        self.names.add(key)
        return default


def arguments_of(module: Any, plugin: str) -> list[str]:
    """Return the names of the arguments in a configuration."""
    struct = getattr(module, f"{plugin}Args", None)
    return [] if struct is None else [field.encode_name for field in msgspec.structs.fields(struct)]


@pytest.mark.parametrize("agent", PAGES)
def test_links_lead_to_existing_files(agent: str) -> None:
    for target in re.findall(r"\]\(([^)#]+)", PAGES[agent].text):
        assert (ROOT / "docs" / "agents" / target).exists(), target
