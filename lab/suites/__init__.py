"""Fixed questions with an exit code each: bench, calibration, overload, soak."""
