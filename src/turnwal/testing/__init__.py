"""Shipped for tests: of turnwal itself, of stores made elsewhere, of agents that write through it."""
