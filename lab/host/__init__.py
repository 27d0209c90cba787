"""The machine: its CPUs, how noisy it is, its processes, and whether it is fit to measure on."""
