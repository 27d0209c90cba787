"""`lab overload`: twice the capacity, with and without load shedding."""
