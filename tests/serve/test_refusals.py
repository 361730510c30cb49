"""The reasons for nodes that an agent refuses, for equal pods and while nodes change."""

from pathlib import Path

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.serve.extendernodes import CALM, FILTER, RISK, WEB, with_free
from tests.serve.extenders import Made, about_names, make

from longshore.api import Pod
from longshore.cluster import PodInfo
from longshore.engine.decision.shapes import shape_key
from longshore.serve.extender.refusals import Reasons
from longshore.testing import NodeBuilder, node, pod

MEMORY_RISK = RISK.replace("cpu", "memory")
TWIN = pod("twin").requests(cpu="500m")

EACH_ITS_OWN = """
class EachItsOwn:
    name, verb = "EachItsOwn", "each-its-own"

    def filter_node(self, state, pod, node):
        return None if node.name.endswith("0") else f"{node.name} has its reasons"
"""

NEVER_THE_SAME = """
from itertools import count
from longshore.framework import Rejection, Scope

class NeverTheSame:
    name, verb, scope = "NeverTheSame", "never-the-same", Scope.NODE
    times = count()

    def filter(self, state, pod, nodes):
        yield Rejection(f"said {next(self.times)} times", True)
"""

TOGETHER = """
import numpy as np
from longshore.framework import Rejection

class Together:
    name, verb = "Together", "together"

    def filter(self, state, pod, nodes):
        size = len(nodes)
        for number in range(80):
            where = np.arange(size) % 80 == number
            yield Rejection(f"reason {number}", where, unresolvable=number % 2 == 0)
        yield Rejection("and all the same", True)
"""


def _refused(made: Made, *names: str, web: Pod = WEB) -> dict[str, str]:
    status, answer = made.post(FILTER, about_names(web, names))
    assert status == 200
    assert sorted([*answer["NodeNames"], *answer["FailedAndUnresolvableNodes"]]) == sorted(names)
    refused: dict[str, str] = answer["FailedAndUnresolvableNodes"]
    return refused


def _loaded(name: str, *, cpu: int, memory: int) -> NodeBuilder:
    """Return a node of four cores and 4 GiB with this much of both free."""
    said = {"mean-free-cpu": str(cpu), "std-free-cpu": "10"}
    said |= {"mean-free-memory": str(memory << 20), "std-free-memory": "1000000"}
    return node(name).allocatable(cpu="4", memory="4Gi").annotations(**said)


def test_a_pod_of_the_same_shape_gets_the_same_reasons() -> None:
    made = make("safe")
    made.put(CALM, with_free("full", 1000), with_free("busy", 900))
    for web in (WEB, TWIN):
        assert _refused(made, "full", "calm", "busy", web=web) == {"full": RISK, "busy": RISK}


def test_changed_nodes_are_refused_for_their_present_state() -> None:
    made = make("safe")
    made.put(_loaded("a", cpu=100, memory=2000), _loaded("b", cpu=2000, memory=2000))
    assert _refused(made, "a", "b") == {"a": RISK}
    made.put(_loaded("b", cpu=2000, memory=10))
    assert _refused(made, "a", "b", web=TWIN) == {"a": RISK, "b": MEMORY_RISK}
    made.put(_loaded("a", cpu=100, memory=10))
    assert _refused(made, "a", "b") == {"a": f"{RISK}, {MEMORY_RISK}", "b": MEMORY_RISK}
    made.put(_loaded("b", cpu=2000, memory=2000))
    assert _refused(made, "a", "b") == {"a": f"{RISK}, {MEMORY_RISK}"}


def test_nodes_that_come_later_have_reasons_too() -> None:
    made = make("safe")
    made.put(with_free("full", 1000))
    assert _refused(made, "full") == {"full": RISK}
    made.put(*(with_free(f"full-{number}", 1000) for number in range(40)))
    names = ["full", *(f"full-{number}" for number in range(40))]
    assert _refused(made, *names) == dict.fromkeys(names, RISK)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from([10, 900, 2000]), st.sampled_from([10, 2000]))))
def test_whatever_changed_the_answer_is_that_of_an_extender_that_starts_now(
    changes: list[tuple[int, int, int]],
) -> None:
    names = [f"node-{number}" for number in range(4)]
    nodes = {name: _loaded(name, cpu=2000, memory=2000) for name in names}
    kept = make("safe")
    kept.put(*nodes.values())
    for number, cpu, memory in changes:
        _refused(kept, *names)
        name = names[number]
        nodes[name] = _loaded(name, cpu=cpu, memory=memory)
        kept.put(nodes[name])
    fresh = make("safe")
    fresh.put(*nodes.values())
    assert _refused(kept, *names) == _refused(fresh, *names)


def test_each_node_may_have_its_own_reason(tmp_path: Path) -> None:
    file = tmp_path / "each.py"
    file.write_text(EACH_ITS_OWN)
    made = make(str(file))
    names = [f"node-{number}" for number in range(300)]
    made.put(*map(node, names))
    for web in (WEB, TWIN):
        status, answer = made.post("predicates/each-its-own", about_names(web, names))
        assert status == 200
        assert answer["NodeNames"] == [name for name in names if name.endswith("0")]
        assert answer["FailedNodes"] == {
            name: f"{name} has its reasons" for name in names if not name.endswith("0")
        }


def test_old_reasons_are_forgotten(tmp_path: Path) -> None:
    file = tmp_path / "never.py"
    file.write_text(NEVER_THE_SAME)
    made = make(str(file))
    made.put(node("a"))
    [profile] = made.engine.profiles
    shape = made.engine.chooser(profile).attempt(PodInfo.of(WEB), shape_key(WEB)).shape
    reasons = Reasons(shape)
    said = set()
    for number in range(500):
        made.put(node("a").labels(number=str(number)))
        shape.refresh()
        [(status, rows)] = reasons.about(np.array([0]))
        assert rows.tolist() == [0]
        said.add(status.message)
    assert len(said) == 500
    assert len(reasons) < 200


def test_many_reasons_may_hold_together(tmp_path: Path) -> None:
    file = tmp_path / "together.py"
    file.write_text(TOGETHER)
    made = make(str(file))
    names = [f"node-{number:03}" for number in range(160)]
    made.put(*map(node, names))
    status, answer = made.post("predicates/together", about_names(WEB, names))
    assert (status, answer["NodeNames"]) == (200, [])
    said = {name: f"reason {number % 80}, and all the same" for number, name in enumerate(names)}
    assert answer["FailedAndUnresolvableNodes"] == {name: said[name] for name in names[::2]}
    assert answer["FailedNodes"] == {name: said[name] for name in names[1::2]}
