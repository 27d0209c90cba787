"""`lab soak`: a long load, with its growth measured against its limits."""
