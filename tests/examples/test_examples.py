"""Every example does what its README says. Time is virtual."""

import re
from pathlib import Path

import msgspec
import pytest
import yaml

from longshore.api import Pod
from longshore.config.setup import set_up
from longshore.engine import Engine
from longshore.pin.profile import StaticOptions, static_configuration, static_plugins
from longshore.sim import Faults, Simulation
from longshore.testing import node, pod

EXAMPLES = Path(__file__).parents[2] / "examples"


def simulation(folder: str, file: str, faults: Faults | None = None) -> Simulation:
    """Load the plugin as `longshore run` does: by --plugin, or by --config for a YAML file."""
    path = str(EXAMPLES / folder / file)
    setup = set_up(plugins=[path]) if file.endswith(".py") else set_up(path)
    engine = Engine(setup.configuration, plugins=setup.plugins)
    return Simulation(engine, faults=faults or Faults())


def manifest(folder: str, file: str) -> list[Pod]:
    documents = yaml.safe_load_all((EXAMPLES / folder / file).read_text())
    pods = [msgspec.convert(document, Pod) for document in documents]
    return [
        msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, namespace="default"))
        for pod in pods
    ]


def message(simulation: Simulation, name: str) -> str:
    [condition] = simulation.cluster.pods[f"default/{name}"].status.conditions
    return condition.message


@pytest.mark.parametrize("folder", sorted(path.name for path in EXAMPLES.iterdir() if path.is_dir()))
def test_every_example_is_one_short_file_that_its_readme_names(folder: str) -> None:
    """The file is a program, or a manifest if the example needs no program."""
    manifests = list((EXAMPLES / folder).glob("*.yaml"))
    [subject] = list((EXAMPLES / folder).glob("*.py")) or manifests
    assert 8 <= len(subject.read_text().splitlines()) <= 40
    others = "".join(file.read_text() for file in manifests if file != subject)
    assert subject.name in (EXAMPLES / folder / "README.md").read_text() + others


def test_01_the_pod_of_the_manifest_prefers_the_fuller_node_with_the_fast_disk() -> None:
    world = simulation("01-score", "fast_disks.py")
    world.create(
        node("slow").allocatable(cpu="8", memory="8Gi"),
        node("fast").allocatable(cpu="4", memory="8Gi").labels(disk="ssd"),
        pod("other").requests(cpu="2").on("fast"),
        *manifest("01-score", "pod.yaml"),
        pod("any").requests(cpu="1"),
    )
    world.run()
    assert world.bindings == {"default/database": "fast", "default/any": "slow"}


def test_02_the_reason_is_in_the_condition() -> None:
    world = simulation("02-filter", "no_spot.py")
    spot = [node(name).allocatable(cpu="4").labels(lifecycle="spot") for name in ("a", "b")]
    world.create(*spot, node("small").allocatable(cpu="500m"))
    world.create(pod("web").requests(cpu="1"), pod("batch").requests(cpu="1").labels(spot="ok"))
    world.run()
    assert world.bindings.keys() == {"default/batch"}
    said = "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) were spot instances."
    assert message(world, "web").startswith(said)


def test_03_the_gang_of_the_manifest_starts_when_its_last_pod_comes() -> None:
    world = simulation("03-permit", "gang.py")
    world.create(node("n1").allocatable(cpu="4"))
    first, second = manifest("03-permit", "pods.yaml")
    world.create(first)
    world.create(second, at=20.0)
    world.run(until=19.0)
    assert world.bindings == {}
    world.run(until=21.0)
    assert world.bindings == {"default/worker-0": "n1", "default/worker-1": "n1"}


def test_03_a_pod_of_an_incomplete_gang_gives_its_room_back() -> None:
    world = simulation("03-permit", "gang.py")
    lonely = pod("lonely").requests(cpu="1").labels(gang="g", **{"gang-size": "2"})
    world.create(node("n1").allocatable(cpu="1"), lonely)
    world.create(pod("other").requests(cpu="1"), at=1.0)
    world.run(until=62.0)
    assert world.bindings == {"default/other": "n1"}
    notes = [event.note for event in world.cluster.events if event.name == "lonely"]
    assert any("rejected due to timeout after waiting 1m0s at plugin Gang" in note for note in notes)


def test_04_a_failed_bind_and_a_deleted_pod_each_return_their_license() -> None:
    world = simulation("04-reserve", "scheduler.yaml", Faults(failed=1.0, until=0.5))
    world.create(node("n1").allocatable(cpu="4"), pod("a").labels(license="yes"))
    world.create(pod("b").labels(license="yes"), at=5.0)
    world.run(until=10.0)
    assert world.bindings == {"default/a": "n1"}
    assert message(world, "b") == "0/1 nodes are available: 1 no license is left."
    world.delete(pod("a"), at=11.0)
    world.run(until=30.0)
    assert world.bindings["default/b"] == "n1"


def test_05_a_pod_goes_to_its_rack_or_nowhere() -> None:
    world = simulation("05-prefilter", "scheduler.yaml")
    world.create(*(node(f"node-{number}") for number in (1, 2, 3)))
    world.create(pod("a").labels(rack="r2"), pod("b").labels(rack="r9"), pod("c"))
    world.run()
    assert world.bindings["default/a"] == "node-3"
    assert world.bindings.keys() == {"default/a", "default/c"}
    assert "node(s) didn't satisfy plugin Racks" in message(world, "b")


def test_06_each_pod_of_the_stateful_set_waits_for_the_label_of_the_readme() -> None:
    documents = yaml.safe_load_all((EXAMPLES / "06-static" / "statefulset.yaml").read_text())
    [stateful_set] = [each for each in documents if each["kind"] == "StatefulSet"]
    template = stateful_set["spec"]["template"]
    pods = [
        msgspec.convert(
            {
                "metadata": {"name": f"web-{number}", "namespace": "default", "uid": f"uid-{number}"},
                "spec": template["spec"],
            },
            Pod,
        )
        for number in range(stateful_set["spec"]["replicas"])
    ]
    name = template["spec"]["schedulerName"]
    readme = (EXAMPLES / "06-static" / "README.md").read_text()
    [(worker, label)] = re.findall(r"kubectl label node (\S+) (\S+)=", readme)
    options = StaticOptions()
    engine = Engine(
        static_configuration(name, options),
        plugins=static_plugins(options, on_legacy=lambda _key, _node: None),
    )
    world = Simulation(engine, faults=Faults())
    nodes = [node(each).allocatable(cpu="4") for each in ("worker-1", "worker-2")]
    world.create(*(each.labels(**{label: ""}) if each.metadata.name == worker else each for each in nodes))
    world.create(*pods)
    world.run(until=10.0)
    assert world.bindings == {"default/web-0": worker}
    assert "no node is labeled rf.scheduler.test.default/web-1" in message(world, "web-1")
