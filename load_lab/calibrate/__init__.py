"""`lab calibrate`: the lab measures servers with known values, and reports its own error."""
