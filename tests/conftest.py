"""One profile for all properties: the examples of a run are those of every run, so that a failure is a change's."""

from hypothesis import settings

settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")
