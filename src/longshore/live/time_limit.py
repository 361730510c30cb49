"""Ends calls of plugins that take too long.

A watchdog thread checks the current call a few times within its limit, and raises an exception in its
thread. Python delivers it between two bytecodes. The exception must hit the plugin and nothing else:

- It is sent only while the plugin's own code is on top of the stack, and not while the plugin has called back
  into Longshore.
- If it was sent but not delivered when the call ends, it is withdrawn.
- A plugin that spends its time in calls of its handle gets the exception there.
- A plugin that spends its time in the code of a library gets it there after some more checks.

A plugin that waits in C code gets the exception when that code returns. Until then, `stuck` names the plugin.
"""

import ctypes
import inspect
import operator
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Generator, Mapping
from itertools import compress, starmap
from typing import Any

import msgspec

from longshore.framework import functions
from longshore.framework.cluster_events import WakeOn
from longshore.framework.effects import Until
from longshore.framework.extension_points import Form, Method, methods
from longshore.framework.functions import FunctionPlugin
from longshore.framework.handle import Factory, Handle, PodListener
from longshore.framework.points import Plugin

# Looks at a call within its limit: a call ends at most one pause too late.
_LOOKS = 10
_MAX_PAUSE = 0.1
# The pause between looks at a call whose time is up, until the exception can be sent.
_SHORT_PAUSE = 0.001
# A call found this often in the code of a library is not expected to return to the plugin's own.
_LOST = 50
# A call that takes this many times its limit counts as stuck.
_STUCK = 2.0


class _TimeIsUp(BaseException):
    """The time of a call is up. It is not an Exception, so that plugins which catch those do not catch it."""


class _Call:
    __slots__ = ("elsewhere", "plugin", "since", "thread", "told")

    def __init__(self, plugin: str) -> None:
        self.plugin = plugin
        self.since = time.monotonic()
        self.thread = threading.get_ident()
        # When the exception was last sent.
        self.told: float | None = None
        # How often it was found in the code of a library, since its time was up.
        self.elsewhere = 0


class Stuck(msgspec.Struct, frozen=True):
    """A plugin that does not return, and when it was called, by `time.monotonic`."""

    plugin: str
    since: float

    def __str__(self) -> str:
        return f"the plugin {self.plugin} has not returned for {time.monotonic() - self.since:.0f} s"


class TimeLimit:
    """Limits the time that each call of a plugin may take. The plugins must be called in one thread.

    A call that takes longer raises TimeoutError. A plugin that answers in steps, as a generator or with
    `async def`, has that time for each step.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        # The calls in progress. A plugin may cause a call of another one: the innermost is the last.
        self._calls: list[_Call] = []
        # The packages of each plugin's own code.
        self._packages: dict[str, set[str]] = {}
        self._closed = threading.Event()
        self._watchdog: threading.Thread | None = None

    def apply(self, factories: Mapping[str, Factory]) -> dict[str, Factory]:
        """Return a factory whose plugins have the limit."""
        return {name: self._limited_factory(factory) for name, factory in factories.items()}

    @property
    def stuck(self) -> Stuck | None:
        """The outermost call that should have ended long ago. Any thread may ask."""
        latest = time.monotonic() - self.seconds * _STUCK
        late = (call for call in tuple(self._calls) if call.since < latest)
        return next((Stuck(call.plugin, call.since) for call in late), None)

    def close(self) -> None:
        """End the watchdog: from now on, calls may take any time."""
        self._closed.set()
        if self._watchdog is not None:
            self._watchdog.join()

    def _limited_factory(self, factory: Factory) -> Factory:
        def make(args: Any, handle: Handle) -> Plugin:
            return self.limited(factory(args, _CheckedHandle(self, handle)))

        return make

    def limited(self, plugin: Plugin) -> Plugin:
        """Return the plugin with the limit on all of its methods and hints."""
        if self._watchdog is None:
            self._watchdog = threading.Thread(target=self._watch, name="plugin-time-limit", daemon=True)
            self._watchdog.start()
        self._packages[plugin.name] = _packages(plugin)
        return _Limited(self, plugin)

    def call(self, plugin: str, method: Callable[..., Any], *args: Any) -> Any:
        """Call the method within the limit."""
        calls = self._calls
        call = _Call(plugin)
        calls.append(call)
        try:
            try:
                return method(*args)
            finally:
                # From here on nothing more is sent. What was, and has not come yet, is taken back; should it
                # come before that is done, it is caught below.
                calls.pop()
                if call.told is not None:
                    _send(call.thread, ctypes.py_object())
        except _TimeIsUp:
            if call in calls:
                calls.remove(call)
            raise TimeoutError(f"took longer than {self.seconds:g}s") from None

    def steps(self, plugin: str, generator: Any) -> Generator[Any, Any, Any]:
        """Run the generator with the limit on each step."""
        resume, value = generator.send, None
        while True:
            try:
                step = self.call(plugin, resume, value)
            except StopIteration as end:
                return end.value
            if isinstance(step, Until):
                step = msgspec.structs.replace(step, check=self.function(plugin, step.check))
            try:
                resume, value = generator.send, (yield step)
            except GeneratorExit:
                generator.close()
                raise
            except BaseException as error:  # also what cancels an `async def`
                resume, value = generator.throw, error

    def function(self, plugin: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function with the limit."""
        call = self.call
        return lambda *args: call(plugin, function, *args)

    def check(self) -> None:
        """End the call under way if its time is up. What a plugin calls back into must call this."""
        for call in self._calls[-1:]:
            if call.thread == threading.get_ident() and time.monotonic() - call.since >= self.seconds:
                raise _TimeIsUp

    # The watchdog.

    def _watch(self) -> None:
        long = min(self.seconds / _LOOKS, _MAX_PAUSE)
        pause = long
        while not self._closed.wait(pause):
            pause = long
            for call in self._calls[-1:]:
                now = time.monotonic()
                # After the exception it has as much time again to clean up.
                if now - (call.told or call.since) >= self.seconds and not self._tell(call, now):
                    pause = min(_SHORT_PAUSE, long)

    def _tell(self, call: _Call, now: float) -> bool:
        """Send the exception to the call, and return whether that was possible."""
        frame = sys._current_frames().get(call.thread)
        if frame is None or not _is_of_the_plugin(frame):
            return False
        if _package(frame.f_globals.get("__name__", "")) not in self._packages.get(call.plugin, ()):
            # A finalizer may be running now: an exception would be lost there.
            call.elsewhere += 1
            if call.elsewhere < _LOST:
                return False
        before, call.told = call.told, now
        # The call, and the code on top of the stack, must still be the same when the exception is sent. No
        # bytecode may run between that look and the sending, or the other thread could: so all of it is one
        # call of `next`, which goes through these in C.
        same_call = map(operator.is_, map(operator.itemgetter(-1), [self._calls]), [call])
        top = map(operator.itemgetter(call.thread), starmap(sys._current_frames, [()]))
        same_frame = map(operator.is_, top, [frame])
        order = (call.thread, ctypes.py_object(_TimeIsUp))
        sent = starmap(_send, compress(compress([order], same_call), same_frame))
        try:
            told = next(sent, None) is not None
        except LookupError:
            # No call is in progress, or the thread has ended.
            told = False
        if not told:
            call.told = before
        return told


_send = ctypes.pythonapi.PyThreadState_SetAsyncExc
_send.argtypes = (ctypes.c_ulong, ctypes.py_object)


def _is_of_the_plugin(frame: Any) -> bool:
    """Whether nothing of Longshore stands between the frame and the call of the plugin."""
    top = frame
    while frame is not None and frame.f_code is not TimeLimit.call.__code__:
        name = frame.f_globals.get("__name__", "")
        if name.startswith("longshore.") and name != functions.__name__:
            return False
        frame = frame.f_back
    return frame is not None and frame is not top


def _packages(plugin: Any) -> set[str]:
    made_of = [plugin.function] if isinstance(plugin, FunctionPlugin) else type(plugin).__mro__
    return {_package(thing.__module__) for thing in made_of} - {"builtins", "longshore"}


def _package(module: str) -> str:
    return module.partition(".")[0]


class _Limited:
    """A plugin whose methods and hints have the limit."""

    def __init__(self, limit: TimeLimit, plugin: Any) -> None:
        self._limit = limit
        self._plugin = plugin
        self.name: str = plugin.name
        for method in methods():
            if hasattr(plugin, method.name):
                setattr(self, method.name, self._limited(method))
        if getattr(plugin, "wakes_on", None) is not None:
            self.wakes_on = tuple(self._with_limited_hint(wake) for wake in plugin.wakes_on)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._plugin, name)

    def _limited(self, method: Method) -> Callable[..., Any]:
        call = self._limit.function(self.name, getattr(self._plugin, method.name))
        if method.form is Form.LIST:
            return lambda *args: self._listed(call(*args))
        if method.form is Form.STEPS:
            return lambda *args: self._stepped(call(*args))
        return call

    def _listed(self, answer: Any) -> Any:
        return self._limit.call(self.name, list, answer) if inspect.isgenerator(answer) else answer

    def _stepped(self, answer: Any) -> Any:
        if inspect.isgenerator(answer):
            return self._limit.steps(self.name, answer)
        if isinstance(answer, Awaitable):
            return _LimitedAwaitable(self._limit, self.name, answer)
        return answer

    def _with_limited_hint(self, wake: WakeOn) -> WakeOn:
        if wake.hint is None:
            return wake
        return msgspec.structs.replace(wake, hint=self._limit.function(self.name, wake.hint))


class _CheckedHandle:
    """A handle that checks the time after each call, and whose listeners have the limit."""

    def __init__(self, limit: TimeLimit, handle: Handle) -> None:
        self._limit = limit
        self._handle = handle

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._handle, name)
        if not inspect.ismethod(found):
            return found

        def checked(*args: Any, **named: Any) -> Any:
            answer = found(*args, **named)
            self._limit.check()
            return answer

        return checked

    def on_pod_change(self, listener: PodListener, plugin: str) -> None:
        self._handle.on_pod_change(self._limit.function(plugin, listener), plugin)


class _LimitedAwaitable:
    def __init__(self, limit: TimeLimit, plugin: str, awaitable: Awaitable[Any]) -> None:
        self._limit = limit
        self._plugin = plugin
        self._awaitable = awaitable

    def __await__(self) -> Generator[Any, Any, Any]:
        return self._limit.steps(self._plugin, self._awaitable.__await__())
