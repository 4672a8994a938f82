"""Killing an agent at every point of its work, and holding what its log says against what happened."""

from turnwal.testing.crash.harness import crash_points, run_plainly
from turnwal.testing.crash.reading import Effect
from turnwal.testing.crash.report import CrashFailures, CrashReport, Failure

__all__ = ["CrashFailures", "CrashReport", "Effect", "Failure", "crash_points", "run_plainly"]
