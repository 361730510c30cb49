"""The bytes that other schedulers and planners exchange, and the modules that are imported for them."""

import subprocess
import sys

import pytest
from google.protobuf.descriptor import FieldDescriptor
from hypothesis import given
from hypothesis import strategies as st

from longshore.api.plan_request import PlanRequest
from longshore.errors import UserError
from longshore.podset import planner_wire
from longshore.podset._pb import planner_pb2

REQUEST = PlanRequest("default", "planner-podset", "p1", ("n1", "n2"))
REQUEST_BYTES = bytes.fromhex("0a0764656661756c74120e706c616e6e65722d706f647365741a02703122026e3122026e32")
PLAN = {"p1": "n2"}
PLAN_BYTES = bytes.fromhex("0a080a02703112026e32")
NAMES = st.text(max_size=20)


class TestRequest:
    def test_is_these_bytes(self) -> None:
        assert planner_wire.encode_request(REQUEST) == REQUEST_BYTES

    def test_is_read_from_these_bytes(self) -> None:
        assert planner_wire.decode_request(REQUEST_BYTES) == REQUEST

    @given(st.builds(PlanRequest, NAMES, NAMES, NAMES, st.lists(NAMES).map(tuple)))
    def test_comes_back_as_it_was(self, request: PlanRequest) -> None:
        assert planner_wire.decode_request(planner_wire.encode_request(request)) == request

    def test_bytes_that_are_none(self) -> None:
        with pytest.raises(planner_wire.Garbled, match=r"^the request is not a SchedulePlanRequest$"):
            planner_wire.decode_request(b"\x0a\x07short")

    def test_fields_that_a_later_version_adds_are_passed_over(self) -> None:
        assert planner_wire.decode_request(REQUEST_BYTES + bytes.fromhex("7a036e6577")) == REQUEST


class TestPlan:
    def test_is_these_bytes(self) -> None:
        assert planner_wire.encode_plan(PLAN) == PLAN_BYTES

    def test_is_read_from_these_bytes(self) -> None:
        assert planner_wire.decode_plan(PLAN_BYTES) == PLAN

    @given(st.dictionaries(NAMES, NAMES))
    def test_comes_back_as_it_was(self, plan: dict[str, str]) -> None:
        assert planner_wire.decode_plan(planner_wire.encode_plan(plan)) == plan

    def test_order_does_not_change_the_bytes(self) -> None:
        pods = [f"p{number}" for number in range(50)]
        forwards = planner_wire.encode_plan(dict.fromkeys(pods, "n"))
        assert planner_wire.encode_plan(dict.fromkeys(reversed(pods), "n")) == forwards

    def test_bytes_that_are_none(self) -> None:
        with pytest.raises(planner_wire.Garbled, match=r"^the answer is not a SchedulePlanResponse$"):
            planner_wire.decode_plan(b"\xff" * 8)

    def test_name_that_is_no_text(self) -> None:
        with pytest.raises(planner_wire.Garbled):
            planner_wire.decode_plan(bytes.fromhex("0a080a02fffe12026e32"))


class TestSchema:
    def test_service_has_the_path_that_all_call(self) -> None:
        [service] = planner_pb2.DESCRIPTOR.services_by_name.values()
        [method] = service.methods
        assert f"/{service.full_name}/{method.name}" == "/planner.SchedulePlanner/BuildSchedulePlan"
        assert (service.full_name, method.name) == (planner_wire.SERVICE, planner_wire.METHOD)

    def test_names_in_json_are_those_of_the_fields(self) -> None:
        fields = planner_pb2.SchedulePlanRequest.DESCRIPTOR.fields
        assert [(f.number, f.name, f.json_name) for f in fields] == [
            (1, "namespace", "namespace"),
            (2, "podSet", "podSet"),
            (3, "scheduledPod", "scheduledPod"),
            (4, "eligibleNodes", "eligibleNodes"),
        ]
        assert {field.type for field in fields} == {FieldDescriptor.TYPE_STRING}


class TestText:
    def test_several_lines_become_one(self) -> None:
        assert planner_wire.one_line(" no\tnode\n\x1b[31m left\r\n") == "no node [31m left"

    def test_endless_text_is_cut(self) -> None:
        assert len(planner_wire.one_line("no " * 10_000)) <= 512


class TestLoading:
    def test_without_the_extra_one_line_says_what_to_install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "grpc.aio", None)
        with pytest.raises(UserError, match=r"^[^\n]*install longshore\[planner\][^\n]*$"):
            planner_wire.require_grpc()

    def test_grpc_is_not_imported_before_it_is_needed(self) -> None:
        script = (
            "import sys, longshore.cli.run, longshore.live.run, longshore.kube.planner_calls, "
            "longshore.serve.planner.service; "
            "print([name for name in sys.modules if name.startswith('grpc')])"
        )
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
        assert done.stdout == "[]\n"
