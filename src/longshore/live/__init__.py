"""The driver of a real cluster: reflectors in, effects out, timers.

`longshore.live.run.schedule` puts the parts together as `longshore run` does.
"""

from longshore.live.follower import Driver

__all__ = ["Driver"]
