"""`lab overload`: twice the capacity, with load shedding and without."""
