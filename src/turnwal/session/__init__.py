"""The live writer: a session that is owned, and the turns, steps and calls that are written through it."""
