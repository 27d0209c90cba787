"""A long load, with its growth measured against its limits."""
