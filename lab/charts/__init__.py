"""The charts of a run, and the style that all charts share."""
