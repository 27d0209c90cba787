"""The load on the target: k6 as a process, and the planned arrival rates of a profile."""

from load_lab.load.workloads import ApiScenario, Place, Profile, Scenario

__all__ = ["ApiScenario", "Place", "Profile", "Scenario"]
