"""The machine: its CPUs, its noise, its processes, and checks before a measurement."""
