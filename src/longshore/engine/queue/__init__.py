"""The scheduling queue: pods that are active, in backoff, unschedulable or gated, and what moves them."""
