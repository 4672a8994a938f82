"""Agents that write for long, are killed all the while, and must lose nothing, grow no more and get no slower."""
