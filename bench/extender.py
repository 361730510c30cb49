"""Load-aware agents: what they cost behind a stock kube-scheduler, and as a plugin of `longshore run`.

    make bench-extender                                       about half an hour on two cores
    make bench-extender ARGS="--rounds 3"

First the time that `longshore extender` takes for a filter and the priorities of `safe-overload`, asked by
the names of 5,000 nodes: bars 10 ms at the median and 25 ms at p99, for pods that are alike, for pods of
which no two are, and for such pods that a third of the nodes is refused to.

Then, as in `bench.throughput`, sides take turns with the same pods on one real API server, and the rate is
pods over the time from the first to the last bind. kube-scheduler has no extender, one entry (filter and
priority `safe-overload`), or two (`congestion` too, from the same process): by the medians of the rounds it
is to keep 0.5 of its throughput with one entry, and 0.7 is the goal. It has the environment that our
manifests give it, but for two sides, without an extender and with one entry. On another side a program in Go
that thinks nothing (`echo`) is in the place of `longshore extender`: what kube-scheduler keeps beside it is
what calling any extender leaves of it on this machine. Two more, without an extender and with one entry, look
at a tenth of the nodes for each pod. One turn has an extender that is sent whole Node objects. `longshore
run` has the plugin SafeOverload or has it not: it is to keep 0.9 of its throughput. All nodes are annotated,
with loads that the filter accepts, and the annotations do not change.

It ends with 1 if a bar is missed, unless it was a quick run.
"""

import argparse
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec
import uvloop
import yaml
from bench.contest import Contest, Side
from bench.extender_latency import WARM_UP, alike, ask, different, large
from bench.node_loads import annotate
from bench.options import arguments, run, sizes
from bench.report import report
from bench.rounds import Turns, alternate, note
from bench.stage import NAMESPACE, Stage
from bench.usage import usage
from bench.workloads import NODE

from longshore.dev import ControlPlane
from longshore.dev.build import KUBERNETES_VERSION, build
from longshore.dev.component import Component, run_bound
from longshore.dev.failure import last_meaningful_line
from longshore.dev.ports import Port
from longshore.dev.progress import PlainProgress
from longshore.dev.toolchain import find_go, go_environment
from longshore.errors import UserError

_NODES_ASKED_ABOUT = 5000
_QUESTIONS = 1000
_QUICK_NODES, _QUICK_QUESTIONS = 200, 50
_MEDIAN_BAR, _P99_BAR = 0.010, 0.025
_ALONE, _ONE, _TWO, _ECHO, _WHOLE = "kube-scheduler", "one entry", "two entries", "echo", "whole nodes"
_BARE, _BARE_ONE = "no environment", "one so"
_FEW, _ONE_OF_FEW = "a tenth", "one of a tenth"
_TENTH = {"percentageOfNodesToScore": 10}
_ECHO_SOURCE = Path(__file__).with_name("echo") / "main.go"
_LONGSHORE, _PLUGIN = "longshore", "SafeOverload"
_ONE_BAR, _GOAL = 0.5, 0.7
_PLUGIN_BAR = 0.9


class _Extender:
    """`longshore extender` on a cluster, with the account of its manifest, or `echo` in its place."""

    def __init__(self, contest: Contest, plane: ControlPlane, checkout: Path) -> None:
        plane.apply(checkout / "deploy" / "extender" / "service-account.yaml")
        kubeconfig = plane.service_account("extender-serviceaccount", namespace="kube-system")
        port = Port()
        self.port = port.number
        port.release()
        self._contest = contest
        self._folder = plane.folder
        self._command = ["extender", "--agents=safe,congestion", f"--port={self.port}"]
        self._command += ["--kubeconfig", str(kubeconfig)]

    def process(self) -> Component:
        return self._contest.command("extender", *self._command, ready=self._ready)

    def echo(self) -> Component:
        program = self._folder / "echo"
        if not program.exists():
            go = find_go(PlainProgress())
            built = run_bound(
                [str(go), "build", "-o", str(program), str(_ECHO_SOURCE)], env=go_environment(go)
            )
            if built.returncode:
                raise UserError(f"{_ECHO_SOURCE} could not be built: {last_meaningful_line(built.stderr)}")
        return Component("echo", program, [str(self.port)], folder=self._folder, ready=self._ready)

    def _ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/readyz", timeout=5) as answer:
                return bool(answer.status == 200)
        except (urllib.error.HTTPError, OSError):
            return False

    def entry(self, agent: str, *, node_cache: bool = True, filters: bool = False) -> dict[str, Any]:
        verbs = {"prioritizeVerb": f"priorities/{agent}"}
        if filters:
            verbs["filterVerb"] = f"predicates/{agent}"
        prefix = f"http://127.0.0.1:{self.port}/scheduler"
        return {"urlPrefix": prefix, **verbs, "weight": 1, "nodeCacheCapable": node_cache}


def _kube_scheduler(
    plane: ControlPlane,
    name: str,
    entries: Sequence[dict[str, Any]],
    *,
    environment: Mapping[str, str],
    settings: Mapping[str, Any],
) -> Component:
    """The stock scheduler as the contests have it, with these extenders."""
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
        "clientConnection": {
            "kubeconfig": str(plane.folder / "kube-scheduler.kubeconfig"),
            "qps": 5000,
            "burst": 5000,
        },
        "extenders": entries,
        **settings,
    }
    file = plane.folder / f"{name.replace(' ', '-')}.json"
    file.write_bytes(msgspec.json.encode(document))
    command = [f"{key}={value}" for key, value in environment.items()]
    command += [str(build() / "kube-scheduler"), f"--config={file}", "--secure-port=0"]
    return Component(name.replace(" ", "-"), Path("/usr/bin/env"), command, folder=plane.folder)


def _environment(manifest: Path) -> dict[str, str]:
    """Of kube-scheduler, in a manifest that runs it beside extenders."""
    _config, deployment = yaml.safe_load_all(manifest.read_text())
    container = deployment["spec"]["template"]["spec"]["containers"][0]
    return {each["name"]: each["value"] for each in container["env"]}


def _longshore(contest: Contest, plane: ControlPlane, name: str, *, plugin: bool) -> Side:
    profile: dict[str, Any] = {"schedulerName": "longshore"}
    if plugin:
        profile["plugins"] = {"multiPoint": {"enabled": [{"name": _PLUGIN}]}}
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
        "profiles": [profile],
    }
    if plugin:
        document["longshore"] = {"measurements": {"provider": "annotations"}}
    file = plane.folder / f"{name}.json"
    file.write_bytes(msgspec.json.encode(document))
    command = ("run", f"--config={file}", "--metrics-port=0")
    return contest.longshore(*command, name=name, scheduler_name="longshore")


def _contest(plane: ControlPlane, stage: Stage, checkout: Path) -> Contest:
    return Contest(
        plane,
        stage,
        checkout=checkout,
        manifest="scheduler.yaml",
        account="longshore",
        namespace="kube-system",
    )


def _answers(options: argparse.Namespace) -> list[str]:
    """The times of the extender alone; the bars that were missed."""
    missed = []
    count, questions = (_QUICK_NODES, _QUICK_QUESTIONS) if options.quick else (_NODES_ASKED_ABOUT, _QUESTIONS)
    checkout = options.longshore.resolve()
    with ControlPlane.start(nodes=0, kwok=False, controller_manager=False) as plane:
        note(f"creating {count} nodes on {plane.server}")
        names = plane.add_nodes(count, cpu=NODE["cpu"], memory=NODE["memory"], pods=NODE["pods"])

        async def prepare() -> _Extender:
            nodes = dict.fromkeys(names, "")
            async with Stage(plane.kubeconfig, plane.folder, nodes=nodes, pods=1, workload="basic") as stage:
                await annotate(stage.client, names)
                return _Extender(_contest(plane, stage, checkout), plane, checkout)

        extender = uvloop.run(prepare())
        process = extender.process()
        process.restart()
        assert process.pid is not None
        print(f"filter and priorities of {count} node names, {questions} pods each, in ms")
        bars = f"(bars {_MEDIAN_BAR * 1e3:g} and {_P99_BAR * 1e3:g})"
        print(f"  {'':<29}{'median':>9}{'p99':>9}{'CPU time':>10}{'refused':>9}   {bars}")
        try:
            for which, pods in (
                ("pods that are alike", alike),
                ("no two pods alike", different),
                ("a third of the nodes refused", large),
            ):
                before = usage(process.pid).cpu_seconds
                taken = ask(extender.port, "safe-overload", names, pods, count=questions)
                cpu = (usage(process.pid).cpu_seconds - before) / (questions + WARM_UP)
                times = f"{taken.median * 1e3:9.1f}{taken.p99 * 1e3:9.1f}{cpu * 1e3:10.1f}"
                print(f"  {which:<29}{times}{taken.refused:9}", flush=True)
                if taken.median > _MEDIAN_BAR:
                    missed.append(f"the median of {which}")
                if taken.p99 > _P99_BAR:
                    missed.append(f"p99 of {which}")
        finally:
            process.kill()
    return missed


def _throughput(options: argparse.Namespace) -> tuple[Turns, Turns]:
    """The turns of all sides, and the one with whole Node objects."""
    nodes, pods, rounds = sizes(options)
    checkout = options.longshore.resolve()
    with ControlPlane.start(nodes=0, scheduler=True, kwok=False, controller_manager=False) as plane:
        note(f"creating {nodes} nodes on {plane.server}")
        names = plane.add_nodes(nodes, cpu=NODE["cpu"], memory=NODE["memory"], pods=NODE["pods"])
        assert plane.scheduler is not None
        plane.scheduler.kill()  # others take its place
        plane.create_namespace(NAMESPACE)
        print(f"\n{nodes} nodes, {pods} pods, kube-scheduler {KUBERNETES_VERSION}", flush=True)

        async def measure() -> tuple[Turns, Turns]:
            async with Stage(
                plane.kubeconfig, plane.folder, nodes=dict.fromkeys(names, ""), pods=pods, workload="basic"
            ) as stage:
                await annotate(stage.client, names)
                contest = _contest(plane, stage, checkout)
                extender = _Extender(contest, plane, checkout)

                manifests = _environment(checkout / "deploy" / "extender" / "extender.safe.yaml")

                def stock(
                    name: str,
                    *entries: dict[str, Any],
                    beside: Callable[[], Component] = extender.process,
                    environment: Mapping[str, str] = manifests,
                    settings: Mapping[str, Any] = MappingProxyType({}),
                ) -> Side:
                    return Side(
                        name=name,
                        scheduler_name="default-scheduler",
                        program=lambda _pods: _kube_scheduler(
                            plane, name, entries, environment=environment, settings=settings
                        ),
                        beside=beside if entries else None,
                    )

                safe, congestion = extender.entry("safe-overload", filters=True), extender.entry("congestion")
                sides = [
                    stock(_ALONE),
                    stock(_ONE, safe),
                    stock(_TWO, safe, congestion),
                    stock(_ECHO, safe, beside=extender.echo),
                    stock(_BARE, environment={}),
                    stock(_BARE_ONE, safe, environment={}),
                    stock(_FEW, settings=_TENTH),
                    stock(_ONE_OF_FEW, safe, settings=_TENTH),
                    _longshore(contest, plane, _LONGSHORE, plugin=False),
                    _longshore(contest, plane, _PLUGIN, plugin=True),
                ]
                if not options.quick:
                    note("a turn to warm up")
                    await contest.turn(sides[0])
                turns = await alternate(contest, sides, rounds)
                whole = stock(_WHOLE, extender.entry("safe-overload", filters=True, node_cache=False))
                return turns, await alternate(contest, [whole], 1)

        return uvloop.run(measure())


def _measure(options: argparse.Namespace) -> bool:
    began = time.monotonic()
    missed = _answers(options) if options.only != "throughput" else []
    sound = True
    if options.only != "answers":
        turns, whole = _throughput(options)
        rates, sound = report(turns | whole)
        missed += _shares(rates)
    note(f"{time.monotonic() - began:.0f} s in all")
    if missed:
        print(f"bars missed: {', '.join(missed)}", file=sys.stderr)
    return sound and (options.quick or not missed)


def _shares(rates: Mapping[str, float]) -> list[str]:
    """What is kept of the throughput; the bars that were missed."""
    one, plugin = rates[_ONE] / rates[_ALONE], rates[_PLUGIN] / rates[_LONGSHORE]
    for what, part, whole in (
        ("whole Node objects (one turn)", _WHOLE, _ALONE),
        ("two entries", _TWO, _ALONE),
        (f"one entry (bar {_ONE_BAR:g}, goal {_GOAL:g})", _ONE, _ALONE),
        ("an extender that thinks nothing", _ECHO, _ALONE),
        ("one entry, both without the environment of the manifests", _BARE_ONE, _BARE),
        ("one entry, both with a tenth of the nodes", _ONE_OF_FEW, _FEW),
        ("one entry with a tenth of the nodes", _ONE_OF_FEW, _ALONE),
    ):
        print(f"kept of kube-scheduler's throughput: {rates[part] / rates[whole]:.2f}  {what}")
    print(f"one entry/an extender that thinks nothing = {rates[_ONE] / rates[_ECHO]:.2f}")
    print(f"longshore with {_PLUGIN}/without = {plugin:.2f} (bar {_PLUGIN_BAR:g})")
    bars = ((_ONE, one, _ONE_BAR), (_PLUGIN, plugin, _PLUGIN_BAR))
    return [name for name, kept, bar in bars if kept < bar]


def main() -> None:
    parser = arguments(__doc__, nodes=1000)
    parser.add_argument("--only", choices=("answers", "throughput"), help="one of the two parts")
    run(_measure, parser.parse_args())


if __name__ == "__main__":
    main()
