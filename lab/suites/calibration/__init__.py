"""Calibration: the lab measures a reference server, and reports its own error."""
