"""Calls of plugins from Reserve to PostBind: what they answer or raise becomes a status with their name."""

import inspect
from collections.abc import Awaitable, Generator
from typing import Any

from longshore.cluster import PodInfo
from longshore.engine.plugin_failure import PLUGIN_ERRORS
from longshore.engine.runner import Step
from longshore.framework import Code, CycleState, Status
from longshore.framework.effects import Answered, Outcome, Run

Asking = Generator[Step, Outcome, Status | None]


def called(plugin: str, point: str, call: Any) -> Status | None:
    """Return the answer of a plugin that answers at once; None for success."""
    try:
        answer = call()
    except PLUGIN_ERRORS as error:  # a plugin's mistake fails only this attempt
        return failure(plugin, point, repr(error))
    return checked(plugin, point, answer)


def checked(plugin: str, point: str, answer: object) -> Status | None:
    """Return the answer as a status of the plugin; None for success."""
    if answer is None:
        return None
    if not isinstance(answer, Status):
        return failure(plugin, point, f"{answer!r} is not a Status")
    if answer.code is Code.SUCCESS:
        return None
    if answer.rejected or answer.code is Code.SKIP:
        return Status(answer.code, answer.reasons, plugin)
    return failure(plugin, point, answer.message)


def ask(plugin: str, point: str, method: Any, state: CycleState, pod: PodInfo, node: str) -> Asking:
    """Return the plugin's answer, which may come at once, step by step or later."""
    try:
        answer = method(state, pod, node)
    except PLUGIN_ERRORS as error:  # as above
        return failure(plugin, point, repr(error))
    return (yield from awaited(plugin, point, answer))


def awaited(plugin: str, point: str, answer: object) -> Asking:
    """Return the answer of a plugin that may have returned a generator or an awaitable."""
    try:
        if inspect.isgenerator(answer):
            answer = yield from answer
        elif isinstance(answer, Awaitable):
            outcome = yield Run(plugin, answer)
            answer = outcome.value if isinstance(outcome, Answered) else Status.error(reason(outcome))
    except PLUGIN_ERRORS as error:  # as above
        return failure(plugin, point, repr(error))
    return checked(plugin, point, answer)


def failure(plugin: str, point: str, message: str) -> Status:
    return Status(Code.ERROR, (f'running {point} plugin "{plugin}": {message}',), plugin)


def as_error(status: Status) -> Status:
    """Make a rejection an error: from PreBind on, the attempt is repeated after a while in any case."""
    return Status(Code.ERROR, status.reasons, status.plugin)


def reason(outcome: Outcome) -> str:
    return outcome.message or type(outcome).__name__
