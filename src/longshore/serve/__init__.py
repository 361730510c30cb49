"""What others ask of a running scheduler over HTTP: metrics and health.

metrics = Metrics(engine)
engine.observe(metrics)
with serving(registry_of(metrics), Health(live={}, ready={}), port=0) as port:
    ...
"""

from longshore.serve.families import registry_of
from longshore.serve.health import Health
from longshore.serve.metrics import Metrics
from longshore.serve.server import serving

__all__ = ["Health", "Metrics", "registry_of", "serving"]
