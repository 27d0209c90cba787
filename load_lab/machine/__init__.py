"""The machine: its CPUs, its noise, and what is observed of processes while a load runs."""
