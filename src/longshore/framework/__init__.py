"""The contract between the engine and its plugins: read `points.py` and you can write one."""

from longshore.framework.points import MAX_SCORE, Filter, Plugin, Score, Verdict
from longshore.framework.profile import Profile, TieBreak, WeightedScore
from longshore.framework.status import Code, Status

__all__ = [
    "MAX_SCORE",
    "Code",
    "Filter",
    "Plugin",
    "Profile",
    "Score",
    "Status",
    "TieBreak",
    "Verdict",
    "WeightedScore",
]
