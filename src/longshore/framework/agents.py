"""The contract of scheduler agents: plugins that also answer a stock kube-scheduler, as its HTTP extender.

An agent decides by the measured load of nodes, which is in `cluster.measures`. A scheduler that runs one
collects measurements, and so does `longshore extender`, which serves agents under their verbs.
"""

from collections.abc import Mapping
from typing import Any, Protocol

from longshore.framework.points import Plugin


class Agent(Plugin, Protocol):
    """A plugin class with a Filter or a Score, and with a verb.

    Two class attributes are optional; `longshore extender` uses them when it makes the plugin:

    `environment(environ: Mapping[str, str]) -> Mapping[str, object]`
                                   A class method that returns the arguments that environment variables set.
                                   It must raise `UserError` for a variable that makes the agent useless.
    `fine_scores_argument: str`    The name of the argument that makes the plugin score from 0 to 100 where
                                   its original scores from 0 to 10. The extender sets it.
    """

    @property
    def verb(self) -> str:
        """The last part of the URL: `predicates/VERB` calls the Filter, `priorities/VERB` the Score."""
        ...


def is_agent(plugin: object) -> bool:
    """Whether the plugin, or the class of a plugin, is an agent."""
    return hasattr(plugin, "verb")


def environment_arguments(agent: Any, environ: Mapping[str, str]) -> Mapping[str, object]:
    """Return the arguments that environment variables set for the agent."""
    read = getattr(agent, "environment", None)
    return {} if read is None else read(environ)


def fine_scores_argument(agent: Any) -> str | None:
    """Return the name of the argument that makes the agent score from 0 to 100, if it has one."""
    return getattr(agent, "fine_scores_argument", None)
