"""The cost of load-aware agents as an extender of a stock kube-scheduler, and as plugins of `longshore run`.

    make bench-extender                                       about half an hour on two cores
    make bench-extender ARGS="--rounds 3"

The first part measures how long `longshore extender` takes for a filter and a prioritize request of
`safe-overload`, with the names of 5,000 nodes. The bars are 10 ms for the median and 25 ms for p99. They hold
for pods that are alike, for pods that all differ, and for pods that a third of the nodes is refused to.

In the second part the sides take turns on one real API server, as in `bench.throughput`. All nodes have
annotations with loads that the filter accepts, and the annotations do not change. The sides:

- kube-scheduler without an extender, with one entry (filter and priority `safe-overload`), and with two
  entries (also `congestion`, from the same process). With one entry it must keep 0.5 of its throughput, by
  the medians of the rounds. The goal is 0.7. It runs with the environment of our manifests.
- kube-scheduler with a no-op extender written in Go (`echo`). This shows what the calls of any extender cost.
- kube-scheduler without the environment of our manifests, without an extender and with one entry.
- kube-scheduler that looks at a tenth of the nodes, without an extender and with one entry.
- One turn of kube-scheduler with an extender that receives whole Node objects.
- `longshore run` with and without the plugin SafeOverload. It must keep 0.9 of its throughput.

The exit code is 1 if a bar is missed, unless it was a quick run.
"""

import argparse
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec
import uvloop
import yaml
from bench.cluster import cluster
from bench.contest import Contest, Side
from bench.extender_latency import WARM_UP, alike, ask, different, large
from bench.node_loads import annotate
from bench.options import arguments, run, sizes
from bench.report import report
from bench.rounds import Turns, alternate, note
from bench.usage import usage

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
_BARE, _BARE_ONE = "no environment", "one, no env"
_FEW, _ONE_OF_FEW = "a tenth", "one of a tenth"
_TENTH = {"percentageOfNodesToScore": 10}
_ECHO_SOURCE = Path(__file__).with_name("echo") / "main.go"
_LONGSHORE, _PLUGIN = "longshore", "SafeOverload"
_ONE_BAR, _GOAL = 0.5, 0.7
_PLUGIN_BAR = 0.9


class _Extender:
    """`longshore extender` with the service account of its manifest, or `echo` instead of it."""

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
    """Return kube-scheduler with these extenders, configured as in the other contests."""
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
    """Return the environment of kube-scheduler in a manifest with extenders."""
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


def _answers(options: argparse.Namespace) -> list[str]:
    """Measure the extender alone, and return the bars that were missed."""
    missed = []
    count, questions = (_QUICK_NODES, _QUICK_QUESTIONS) if options.quick else (_NODES_ASKED_ABOUT, _QUESTIONS)
    with cluster(count) as (plane, nodes):
        names = list(nodes)

        async def prepare() -> _Extender:
            async with Contest.on(plane, nodes, pods=1, checkout=options.longshore) as contest:
                await annotate(contest.stage.client, names)
                return _Extender(contest, plane, options.longshore)

        extender = uvloop.run(prepare())
        process = extender.process()
        process.restart()
        assert process.pid is not None
        print(f"filter and prioritize requests with {count} node names, for {questions} pods each, in ms")
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
    """Return the turns of all sides, and the one with whole Node objects."""
    nodes, pods, rounds = sizes(options)
    with cluster(nodes, scheduler=True) as (plane, names):
        print(f"\n{nodes} nodes, {pods} pods, kube-scheduler {KUBERNETES_VERSION}", flush=True)

        async def measure() -> tuple[Turns, Turns]:
            async with Contest.on(plane, names, pods=pods, checkout=options.longshore) as contest:
                await annotate(contest.stage.client, list(names))
                extender = _Extender(contest, plane, options.longshore)
                manifests = _environment(options.longshore / "deploy" / "extender" / "extender.safe.yaml")

                def stock(
                    name: str,
                    *entries: dict[str, Any],
                    companion: Callable[[], Component] = extender.process,
                    environment: Mapping[str, str] = manifests,
                    settings: Mapping[str, Any] = MappingProxyType({}),
                ) -> Side:
                    return Side(
                        name=name,
                        scheduler_name="default-scheduler",
                        program=lambda _pods: _kube_scheduler(
                            plane, name, entries, environment=environment, settings=settings
                        ),
                        companion=companion if entries else None,
                    )

                safe, congestion = extender.entry("safe-overload", filters=True), extender.entry("congestion")
                sides = [
                    stock(_ALONE),
                    stock(_ONE, safe),
                    stock(_TWO, safe, congestion),
                    stock(_ECHO, safe, companion=extender.echo),
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
    missed = _answers(options) if options.only != "throughput" else []
    sound = True
    if options.only != "answers":
        turns, whole = _throughput(options)
        rates, sound = report(turns | whole)
        missed += _shares(rates)
    if missed:
        print(f"bars missed: {', '.join(missed)}", file=sys.stderr)
    return sound and (options.quick or not missed)


def _shares(rates: Mapping[str, float]) -> list[str]:
    """Print how much of the throughput each side keeps, and return the bars that were missed."""
    one, plugin = rates[_ONE] / rates[_ALONE], rates[_PLUGIN] / rates[_LONGSHORE]
    for what, part, whole in (
        ("whole Node objects (one turn)", _WHOLE, _ALONE),
        ("two entries", _TWO, _ALONE),
        (f"one entry (bar {_ONE_BAR:g}, goal {_GOAL:g})", _ONE, _ALONE),
        ("a no-op extender", _ECHO, _ALONE),
        ("one entry, both without the environment of the manifests", _BARE_ONE, _BARE),
        ("one entry, both with a tenth of the nodes", _ONE_OF_FEW, _FEW),
        ("one entry with a tenth of the nodes", _ONE_OF_FEW, _ALONE),
    ):
        print(f"kept of kube-scheduler's throughput: {rates[part] / rates[whole]:.2f}  {what}")
    print(f"one entry/a no-op extender = {rates[_ONE] / rates[_ECHO]:.2f}")
    print(f"longshore with {_PLUGIN}/without = {plugin:.2f} (bar {_PLUGIN_BAR:g})")
    bars = ((_ONE, one, _ONE_BAR), (_PLUGIN, plugin, _PLUGIN_BAR))
    return [name for name, kept, bar in bars if kept < bar]


def main() -> None:
    parser = arguments(__doc__, nodes=1000)
    parser.add_argument("--only", choices=("answers", "throughput"), help="run only this part")
    run(_measure, parser.parse_args())


if __name__ == "__main__":
    main()
