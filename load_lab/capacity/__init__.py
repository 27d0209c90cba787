"""`lab capacity`: the highest constant arrival rate that a target sustains within its SLO."""
