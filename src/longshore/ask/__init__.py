"""Answers to what people ask: explain, preview, verify, pins, risk, triggers and snapshots of a cluster."""
