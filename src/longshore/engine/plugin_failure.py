"""The failure of a plugin, under its name."""

from longshore.framework import Code, Status

# What a plugin may raise without harm to others. KeyboardInterrupt still ends the scheduler.
PLUGIN_ERRORS = (Exception, SystemExit)


class PluginFailure(Exception):
    """A plugin raised, or returned nonsense. It fails the attempt of one pod, and nothing else."""

    def __init__(self, plugin: str, point: str, what: str) -> None:
        place = f'"{plugin}" filter plugin' if point == "filter" else f'{point} plugin "{plugin}"'
        super().__init__(f"running {place}: {what}")
        self.plugin = plugin

    @property
    def status(self) -> Status:
        return Status(Code.ERROR, (str(self),), self.plugin)
