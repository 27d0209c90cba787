"""The report of an experiment: stored runs in; one page, its Markdown and pictures out."""
