"""A long load: what it made grow, measured against its limits."""
