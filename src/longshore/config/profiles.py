"""Reads the profiles: their plugin sets, their arguments, and the rules that hold between profiles."""

from collections.abc import Mapping
from functools import partial

from longshore.config.arguments import DEFAULT_ARGS, PluginArgs, read_arguments
from longshore.config.fields import Fields, read_mapping
from longshore.config.plugins import (
    IDLE_POINTS,
    KUBE_SCHEDULER_PLUGINS,
    MULTI_POINT,
    PLACEMENT_POINTS,
    REMOVED_PLUGINS,
    PluginPoints,
)
from longshore.config.problems import Report, child, quoted, suggestion
from longshore.config.resolution import ALL, PluginSet, resolve
from longshore.config.values import EnabledPlugin, ProfileConfiguration
from longshore.framework.extension_points import POINTS

DEFAULT_SCHEDULER_NAME = "default-scheduler"


class Plugins:
    """The plugins that a file may name. It notes which of those in the file have no effect."""

    def __init__(self, known: Mapping[str, PluginPoints]) -> None:
        defaults = {name: plugin.points for name, plugin in KUBE_SCHEDULER_PLUGINS.items()}
        absent = {name for name, plugin in KUBE_SCHEDULER_PLUGINS.items() if plugin.absent}
        # A plugin may replace a default plugin that Longshore lacks, but no other default plugin.
        own = {name: points for name, points in known.items() if name not in defaults or name in absent}
        self.implements: Mapping[str, PluginPoints] = defaults | own
        self.own = own.keys()
        self.absent = absent - own.keys()
        self.inert = {name for name, plugin in KUBE_SCHEDULER_PLUGINS.items() if plugin.inert} - own.keys()
        self._inert_in_file: dict[str, None] = {}
        self._idle_in_file: dict[str, set[str]] = {}

    def note_inert(self, name: str) -> None:
        self._inert_in_file[name] = None

    def note_idle(self, name: str, point: str) -> None:
        self._idle_in_file.setdefault(name, set()).add(point)

    def warn_of_inert(self, report: Report) -> None:
        if self._inert_in_file:
            report.warning(", ".join(self._inert_in_file), "accepted, but has no effect in Longshore yet")
        for name, points in self._idle_in_file.items():
            report.warning(
                name, f"accepted at {' and '.join(sorted(points))}, but has no effect there in Longshore"
            )

    def check(self, fields: Fields, name: str) -> bool:
        """Whether the plugin is known. If not, report it as a problem of the field `name`."""
        if not name or name in self.implements:
            return bool(name)
        fields.problem("name", f"unknown plugin {quoted(name)}{self._hint(name)}")
        return False

    def check_disabled(self, fields: Fields, name: str) -> None:
        """Warn of an unknown plugin. As in kube-scheduler, files can disable plugins of older versions."""
        if name and name != ALL and name not in self.implements:
            fields.warning("name", f"there is no plugin {quoted(name)} to disable{self._hint(name)}")

    def _hint(self, name: str) -> str:
        if name == ALL:
            return ": it stands for all plugins, and is allowed only under disabled"
        if name in REMOVED_PLUGINS:
            return f": it was removed and replaced by {REMOVED_PLUGINS[name]}"
        return suggestion(name, self.implements)


def read_profiles(
    fields: Fields, known: Mapping[str, PluginPoints], percentage: int
) -> tuple[ProfileConfiguration, ...]:
    """Read the profiles. Without any, the default profile is used."""
    plugins = Plugins(known)
    name = "" if fields.count("profiles") > 1 else DEFAULT_SCHEDULER_NAME
    profiles = fields.each("profiles", lambda profile: _profile(profile, plugins, name, percentage))
    plugins.warn_of_inert(fields.report)
    _check_names(fields, profiles)
    _check_queue_sort(fields, profiles)
    return profiles or (default_profile(name, percentage),)


def default_profile(scheduler_name: str, percentage: int = 0) -> ProfileConfiguration:
    def reader(fields: Fields) -> ProfileConfiguration:
        return _profile(fields, Plugins({}), scheduler_name, percentage)

    return read_mapping({}, "", Report(), reader)


def _profile(fields: Fields, plugins: Plugins, default_name: str, percentage: int) -> ProfileConfiguration:
    if default_name and not fields.given("schedulerName"):
        name = fields.text("schedulerName", default_name)
    else:
        name = fields.needed_text("schedulerName", "a name that no other profile has")
    sets = fields.nested("plugins", lambda inner: _sets(inner, plugins))
    points = resolve(sets, plugins.implements)
    _check_points(fields, points)
    return ProfileConfiguration(
        scheduler_name=name,
        percentage_of_nodes_to_score=fields.integer(
            "percentageOfNodesToScore", percentage, at_least=0, at_most=100
        ),
        points={
            point: tuple(plugin for plugin in enabled if plugin.name not in plugins.absent)
            for point, enabled in points.items()
        },
        args=_arguments(fields, plugins),
    )


def _sets(fields: Fields, plugins: Plugins) -> dict[str, PluginSet]:
    return {
        point: fields.nested(point, partial(_set, point=point, plugins=plugins))
        for point in (*POINTS, MULTI_POINT, *PLACEMENT_POINTS)
    }


def _set(fields: Fields, *, point: str, plugins: Plugins) -> PluginSet:
    enabled: dict[str, int] = {}

    def enable(item: Fields) -> None:
        name = item.needed_text("name", "the name of a plugin")
        weight = item.integer("weight", at_least=0)
        item.report.plugins.add(name)
        if not plugins.check(item, name):
            return
        points = plugins.implements[name]
        if name in enabled:
            item.problem("name", f"{name} is already enabled here; keep one of them")
        elif point in IDLE_POINTS.get(name, ()):
            plugins.note_idle(name, point)
        elif point != MULTI_POINT and point not in points:
            item.problem("name", f"{name} does not implement {point}, only {', '.join(sorted(points))}")
        else:
            enabled[name] = weight
            if name in plugins.inert or point in PLACEMENT_POINTS:
                plugins.note_inert(name if name in plugins.inert else point)

    def disable(item: Fields) -> str:
        name = item.needed_text("name", 'the name of a plugin, or "*" for all')
        item.integer("weight", at_least=0)
        item.report.plugins.add(name)
        plugins.check_disabled(item, name)
        return name

    fields.each("enabled", enable)
    return PluginSet(enabled, frozenset(fields.each("disabled", disable)))


def _arguments(fields: Fields, plugins: Plugins) -> dict[str, PluginArgs]:
    args = dict(DEFAULT_ARGS)
    seen: set[str] = set()

    def configure(item: Fields) -> None:
        name = item.needed_text("name", "the name of a plugin")
        if not plugins.check(item, name):
            item.mapping("args")
            return
        if name in seen:
            item.problem("name", f"{name} already has arguments; keep one of them")
        seen.add(name)
        item.report.arguments[fields.path, name] = child(item.path, "args")
        if name in plugins.inert:
            plugins.note_inert(name)
        if name in DEFAULT_ARGS:
            args[name] = item.nested("args", partial(read_arguments, name))
        elif name in plugins.own:
            args[name] = item.mapping("args")
        elif item.mapping("args"):
            item.problem("args", f"{name} takes no arguments; remove them")

    fields.each("pluginConfig", configure)
    return args


def _check_points(fields: Fields, points: Mapping[str, tuple[EnabledPlugin, ...]]) -> None:
    path = child(fields.path, "plugins")
    if len(points["queueSort"]) != 1:
        names = " and ".join(plugin.name for plugin in points["queueSort"]) or "none"
        fields.report.problem(f"{path}.queueSort", f"exactly one plugin must be enabled, found {names}")
    if not points["bind"]:
        fields.report.problem(f"{path}.bind", "at least one plugin must be enabled, such as DefaultBinder")


def _check_names(fields: Fields, profiles: tuple[ProfileConfiguration, ...]) -> None:
    first: dict[str, int] = {}
    for index, profile in enumerate(profiles):
        name = profile.scheduler_name
        if name and name in first:
            taken = f"{quoted(name)} is already the name of profiles[{first[name]}]; each needs its own"
            fields.report.problem(f"profiles[{index}].schedulerName", taken)
        first.setdefault(name, index)


def _check_queue_sort(fields: Fields, profiles: tuple[ProfileConfiguration, ...]) -> None:
    """Report profiles that sort the queue in different ways. All profiles share one queue."""
    sorts = [profile.points["queueSort"] for profile in profiles]
    for index in range(1, len(profiles)):
        if len(sorts[0]) != 1 or len(sorts[index]) != 1:
            continue
        name, here = sorts[0][0].name, sorts[index][0].name
        if here != name:
            same = f"must be the same in all profiles, found {here} here and {name} in profiles[0]"
            fields.report.problem(f"profiles[{index}].plugins.queueSort", same)
        elif profiles[index].args.get(name) != profiles[0].args.get(name):
            same = f"the arguments of {name} must be the same in all profiles, which share one queue"
            fields.report.problem(f"profiles[{index}].pluginConfig", same)
