"""What the engine tells about its decisions: records of past ones, explanations on request, and metrics."""
