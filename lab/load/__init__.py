"""The load on the target: k6 as a process, and the arrival rates that a profile plans."""

from lab.load.workloads import ApiScenario, Profile, Scenario

__all__ = ["ApiScenario", "Profile", "Scenario"]
