"""The servers of a running process: metrics and health, agents as an HTTP extender, and a gRPC planner.

metrics = Metrics(engine)
engine.observe(metrics)
with serving(registry_of(metrics), Health(live={}, ready={}), port=0) as port:
    ...
"""

from longshore.serve.health import Health
from longshore.serve.metrics.engine_observer import Metrics
from longshore.serve.metrics.scheduler_metrics import registry_of
from longshore.serve.server import serving

__all__ = ["Health", "Metrics", "registry_of", "serving"]
