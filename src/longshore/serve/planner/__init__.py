"""The gRPC planner service: plans pod sets for schedulers in other processes."""
