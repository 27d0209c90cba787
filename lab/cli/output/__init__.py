"""Terminal output of results."""
