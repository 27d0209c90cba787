"""Results: typed, judged, stored, drawn."""
