"""The load on the target: k6 as a process, and the planned arrival rates of a profile."""

from lab.load.workloads import ApiScenario, Profile, Scenario

__all__ = ["ApiScenario", "Profile", "Scenario"]
