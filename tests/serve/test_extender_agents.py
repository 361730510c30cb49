"""Which agents an extender serves, and what it reports about its work."""

import time
from collections.abc import Callable
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path

import pytest
from structlog.testing import capture_logs
from tests.serve.extendernodes import CALM, FILTER, PRIORITIES, RISK, WEB, with_free
from tests.serve.extenders import (
    Made,
    about_names,
    about_nodes,
    by_host,
    make,
)

from longshore.agents.load import REASON_NO_MEASUREMENTS
from longshore.engine import Measurements
from longshore.errors import UserError
from longshore.serve.extender import agent_choice
from longshore.testing import NodeBuilder, node


def test_only_chosen_agents_have_routes() -> None:
    made = make("congestion")
    assert made.post("priorities/safe-balance", about_names(WEB, []))[0] == 404
    assert made.post("priorities/congestion", about_names(WEB, []))[0] == 200


def test_a_file_that_cannot_be_read_does_not_stop_the_others(tmp_path: Path) -> None:
    broken = tmp_path / "broken.py"
    broken.write_text("x = 1\ndef f(:\n")
    made = make("congestion", str(broken))
    assert [(name, problem.partition(": ")[0]) for name, problem in made.told] == [
        (str(broken), f"{broken}:2")
    ]


def test_an_installed_agent_that_cannot_be_imported_does_not_stop_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in (
        ("torn_pigeon", "x = 1\nclass Pigeon(\n"),
        ("lost_pigeon", "\n\nimport nowhere_at_all\n"),
    ):
        (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    points = [
        EntryPoint("torn", "torn_pigeon", agent_choice.GROUP),
        EntryPoint("lost", "lost_pigeon", agent_choice.GROUP),
        EntryPoint("foo", "longshore.agents.foo", agent_choice.GROUP),
    ]
    monkeypatch.setattr(
        agent_choice, "entry_points", lambda *, group: EntryPoints(points).select(group=group)
    )
    made = make("all")
    assert [(name, problem.partition(": ")[0]) for name, problem in made.told] == [
        ("lost", f"{tmp_path}/lost_pigeon.py:3"),
        ("torn", f"{tmp_path}/torn_pigeon.py:2"),
    ]
    assert made.post("priorities/foo", about_names(WEB, []))[0] == 200


def test_a_plugin_that_cannot_be_created_does_not_stop_the_others(tmp_path: Path) -> None:
    file = tmp_path / "picky.py"
    file.write_text(
        "class Picky:\n"
        "    name, verb = 'Picky', 'picky'\n"
        "    def __init__(self):\n"
        "        raise ValueError('not today')\n"
        "    def score(self, state, pod, nodes):\n"
        "        return 0\n"
    )
    made = make("congestion", str(file))
    assert made.told == [("Picky", f"{file}:1: Picky cannot be made: ValueError: not today")]
    assert made.post("priorities/picky", about_names(WEB, []))[0] == 404


def test_it_is_an_error_if_all_agents_are_broken(tmp_path: Path) -> None:
    broken = tmp_path / "broken.py"
    broken.write_text("import nowhere_to_be_found\n")
    with pytest.raises(UserError, match=r"no agent can be served: .*broken\.py:1: ModuleNotFoundError"):
        make(str(broken))


def test_two_agents_cannot_have_the_same_verb(file: str, tmp_path: Path) -> None:
    other = tmp_path / "other.py"
    other.write_text(
        "class Other:\n    name, verb = 'Other', 'mild'\n    def filter(self, *_):\n        return ()\n"
    )
    with pytest.raises(UserError, match=r"other\.py:1: predicates/mild is already defined in .*mine\.py:\d+"):
        make(file, str(other))


def test_one_verb_may_have_a_filter_here_and_a_score_there(file: str, tmp_path: Path) -> None:
    other = tmp_path / "other.py"
    other.write_text(
        "class Other:\n    name, verb = 'Other', 'mild'\n    def score(self, *_):\n        return 70\n"
    )
    made = make(file, str(other))
    made.put(CALM)
    assert by_host(made.post("priorities/mild", about_names(WEB, ["calm"]))[1]) == {"calm": 7}


def test_an_unknown_agent_is_reported_with_the_known_ones() -> None:
    with pytest.raises(UserError, match="agent 'saef' does not exist: choose from congestion, foo"):
        make("saef")


def test_a_file_without_agents_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "plain.py"
    file.write_text("class Plain:\n    name = 'Plain'\n    def score(self, *_):\n        return 0\n")
    with pytest.raises(UserError, match="has no agent: an agent is a plugin class with a verb"):
        make(str(file))


def test_the_environment_sets_what_arguments_do_not() -> None:
    vector_b = with_free("b", 1000)
    lenient = make("safe", environ={"SAFEUTILIZATION": "100"})
    assert by_host(lenient.post(PRIORITIES, about_nodes(WEB, [vector_b]))[1]) == {"b": 10}
    overruled = make(
        "safe", environ={"SAFEUTILIZATION": "100"}, arguments={"SafeOverload": {"utilization": 90}}
    )
    assert by_host(overruled.post(PRIORITIES, about_nodes(WEB, [vector_b]))[1]) == {"b": 0}


def test_arguments_for_an_agent_that_was_not_chosen_are_an_error() -> None:
    with pytest.raises(
        UserError, match="arguments for SafeOverload: the chosen agents have the plugins Congestion"
    ):
        make("congestion", arguments={"SafeOverload": {}})


def test_wrong_arguments_stop_the_start() -> None:
    with pytest.raises(UserError, match="SafeOverload"):
        make("safe", arguments={"SafeOverload": {"utilisation": 90}})


def test_metrics_count_requests_and_nodes(safe: Made) -> None:
    safe.post(FILTER, about_names(WEB, ["calm", "full"]))
    safe.post(FILTER, b"{")
    safe.post("predicates/../../etc", b"{")
    text = safe.extender.answer("GET", "/metrics", b"").body.decode()
    lines = set(text.splitlines())
    assert f'longshore_extender_requests_total{{code="200",verb="{FILTER}"}} 1.0' in lines
    assert f'longshore_extender_requests_total{{code="400",verb="{FILTER}"}} 1.0' in lines
    assert 'longshore_extender_requests_total{code="404",verb="other"} 1.0' in lines
    assert f'longshore_extender_nodes_asked_total{{verb="{FILTER}"}} 2.0' in lines
    assert f'longshore_extender_nodes_answered_total{{verb="{FILTER}"}} 1.0' in lines
    assert 'longshore_measured_nodes{measure="cpu/mean"} 2.0' in lines


def test_metrics_tell_how_old_measurements_are(safe: Made) -> None:
    then = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - 100))
    safe.put(CALM.annotations(**{"longshore.dev/measured-at": then}))
    text = safe.extender.answer("GET", "/metrics", b"").body.decode()
    [age] = [
        float(line.split()[-1])
        for line in text.splitlines()
        if line.startswith('longshore_measurement_age_seconds{measure="cpu/mean",which="oldest"}')
    ]
    assert 99 <= age <= 130


# Outdated values.


def measured_ago(seconds: float) -> NodeBuilder:
    """Return a full node that was measured this long ago."""
    then = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - seconds))
    return with_free("full", 1000).annotations(**{"longshore.dev/measured-at": then})


@pytest.mark.parametrize(
    ("missing", "left", "score"), [("FailOpen", True, 5), ("FailClosed", False, 0), ("Neutral", True, 0)]
)
@pytest.mark.parametrize("about", [about_nodes, about_names])
def test_values_that_are_too_old_count_by_the_policy(
    missing: str, left: bool, score: int, about: Callable[..., dict[str, object]]
) -> None:
    made = make("safe", arguments={"SafeOverload": {"missing": missing}})
    old = measured_ago(400)
    made.engine.receive(Measurements(), now=time.monotonic())
    made.put(old)
    said = about(WEB, [old] if about is about_nodes else ["full"])
    _, answer = made.post(FILTER, said)
    refusals = answer["FailedAndUnresolvableNodes"]
    assert refusals == ({} if left else {"full": REASON_NO_MEASUREMENTS})
    assert by_host(made.post(PRIORITIES, said)[1]) == {"full": score}


def test_nodes_that_are_sent_become_stale_without_other_requests(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = make("safe", cached=False, arguments={"SafeOverload": {"missing": "FailOpen"}})
    fresh = measured_ago(0)
    assert made.post(FILTER, about_nodes(WEB, [fresh]))[1]["Nodes"]["items"] == []
    now = time.time()
    monkeypatch.setattr("longshore.serve.extender.routes.time.time", lambda: now + 400)
    assert len(made.post(FILTER, about_nodes(WEB, [fresh]))[1]["Nodes"]["items"]) == 1


def test_nodes_sent_after_a_long_pause_are_judged_by_the_current_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = make("safe", cached=False)
    before, after = measured_ago(0), measured_ago(-590)
    made.post(FILTER, about_nodes(WEB, [before]))
    now = time.time()
    monkeypatch.setattr("longshore.serve.extender.routes.time.time", lambda: now + 600)
    answer = made.post(FILTER, about_nodes(WEB, [after]))[1]
    assert answer["FailedAndUnresolvableNodes"] == {"full": RISK}


def test_measurements_of_a_provider_count_for_nodes_that_are_sent() -> None:
    made = make("safe")
    bare = node("bare").allocatable(cpu="4")
    made.extender.measured({"cpu/mean": {"bare": (3900.0, time.time())}, "cpu/std": {"bare": (100.0, 0.0)}})
    _, answer = made.post(FILTER, about_nodes(WEB, [bare]))
    assert answer["FailedAndUnresolvableNodes"] == {"bare": RISK}


def test_a_round_without_measurements_keeps_the_values_of_sent_nodes() -> None:
    made = make("safe")
    made.extender.measured({"cpu/mean": {"bare": (3900.0, time.time())}, "cpu/std": {"bare": (100.0, 0.0)}})
    made.extender.measured({})
    made.extender.measured({"cpu/mean": {}})
    _, answer = made.post(FILTER, about_nodes(WEB, [node("bare").allocatable(cpu="4")]))
    assert answer["FailedAndUnresolvableNodes"] == {"bare": RISK}


def test_each_answer_of_an_agent_is_one_line_of_the_log(safe: Made) -> None:
    with capture_logs() as told:
        safe.post(FILTER, about_names(WEB, ["calm", "full"]))
        safe.post(PRIORITIES, about_names(WEB, ["calm"]))
    assert [line for line in told if line["log_level"] == "info"] == [
        {"log_level": "info", "event": "answered", "verb": FILTER, "pod": WEB.key, "nodes": 2, "left": 1},
        {"log_level": "info", "event": "answered", "verb": PRIORITIES, "pod": WEB.key, "nodes": 1, "left": 1},
    ]
