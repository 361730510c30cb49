"""A simulated cluster in virtual time: what the engine would do, without a cluster and without waiting.

simulation = Simulation(Engine())
simulation.create(node("n1").allocatable(cpu="4", memory="8Gi"))
simulation.create(pod("web").requests(cpu="1"), at=5.0)
simulation.run()
simulation.bindings    # {"default/web": "n1"}
"""

from longshore.sim.cluster import Faults, SimulatedCluster
from longshore.sim.schedule import Placed, schedule
from longshore.sim.simulation import Simulation

__all__ = ["Faults", "Placed", "SimulatedCluster", "Simulation", "schedule"]
