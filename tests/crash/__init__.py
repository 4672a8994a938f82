"""Processes that are killed, interrupted and starved on purpose, and what must hold of the log afterwards."""
