"""Reward learns how well pods of a type do on each node, and scores nodes by it."""
