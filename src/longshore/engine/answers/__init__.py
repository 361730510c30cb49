"""What the engine can say about its decisions: records, explanations, and hooks for metrics."""
