"""Pods of one shape that the same plugins rejected: a hint with `by_shape` is called for one of them."""

from typing import Any

import pytest
from tests.engine.queues import FIT, NODE_ADDED, NODE_LABELLED, Scene

from longshore.api import Pod
from longshore.framework import Action, Resource, WakeOn
from longshore.testing import pod

A, B, C = pod("a"), pod("b"), pod("c").labels(app="other")


class Hint:
    """Helps pods without a label or with this one, and notes the pods that it is called for."""

    def __init__(self, app: str | None = None) -> None:
        self._app = app
        self.asked: list[str] = []

    def __call__(self, waiting: Pod, _old: Any, _new: Any) -> bool:
        self.asked.append(waiting.metadata.name)
        return waiting.metadata.labels.get("app") == self._app


def scene_of(*pods: Pod, hint: Hint, by_shape: bool = True) -> Scene:
    """Return a queue with all pods rejected; those with equal labels have one shape."""
    scene = Scene(*pods)
    node = Action.ADD | Action.UPDATE_NODE_LABEL
    scene.plugins.wakes_on["Fit"] = (WakeOn(Resource.NODE, node, hint, by_shape=by_shape),)
    for _ in pods:
        entry = scene.popped()
        entry.shape_key = repr(entry.pod.metadata.labels).encode()
        scene.queue.fail(entry, now=10.0, rejectors=FIT)
    return scene


def test_a_hint_is_called_once_and_all_pods_of_the_shape_wake() -> None:
    hint = Hint()
    scene = scene_of(A, B, C, hint=hint)
    scene.queue.event(NODE_ADDED, now=60.0)
    assert len(hint.asked) == 2
    assert scene.names() == ["a", "b"]
    assert scene.place(C) == "unschedulable"


def test_a_hint_that_is_not_by_shape_is_called_for_each_pod() -> None:
    hint = Hint("nobody")
    scene_of(A, B, C, hint=hint, by_shape=False).queue.event(NODE_ADDED, now=60.0)
    assert sorted(hint.asked) == ["a", "b", "c"]


@pytest.mark.parametrize("by_shape", [True, False])
def test_pods_wake_in_the_order_in_which_they_came(by_shape: bool) -> None:
    scene = scene_of(A, C, B, hint=Hint(), by_shape=by_shape)
    scene.plugins.asked.clear()
    scene.queue.event(NODE_LABELLED, now=60.0)
    assert scene.plugins.asked == [("a", ""), ("b", "")]


def test_a_pod_that_changed_is_in_another_group() -> None:
    hint = Hint()
    scene = scene_of(A, B, hint=hint)
    scene.queue.put(B.labels(app="other"), now=20.0)
    scene.queue.event(NODE_ADDED, now=60.0)
    assert (scene.place(A), scene.place(B)) == ("active", "unschedulable")
    assert sorted(hint.asked) == ["a", "b"]


def test_a_hint_is_not_called_for_a_pod_that_is_gone() -> None:
    hint = Hint()
    scene = scene_of(A, B, hint=hint)
    scene.queue.withdraw(B)
    scene.queue.event(NODE_ADDED, now=60.0)
    assert hint.asked == ["a"]
    assert scene.names() == ["a"]
