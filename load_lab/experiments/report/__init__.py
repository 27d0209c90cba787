"""The report of an experiment: one HTML page, Markdown and pictures."""
