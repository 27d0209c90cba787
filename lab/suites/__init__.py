"""Suites with a fixed question and an exit code each: bench, calibration, overload, soak."""
