"""Answers to questions that people ask about a cluster, and the writes of `longshore pin` and `trigger`."""
