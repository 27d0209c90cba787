"""The load on the target: k6 as a process, and the arrival rates that a profile plans."""
