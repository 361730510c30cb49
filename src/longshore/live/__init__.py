"""Engines on a real cluster: the scheduler, the extender's, the planner's and the static scheduler's.

Each is a configuration of the one loop in `follower.py`; `longshore.live.run.schedule` puts the parts of
`longshore run` together.
"""

from longshore.live.follower import Follower

__all__ = ["Follower"]
