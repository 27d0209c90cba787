"""The report of an experiment: stored runs as one HTML page, Markdown and pictures."""
