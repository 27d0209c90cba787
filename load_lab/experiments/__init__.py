"""Experiments: from their files in experiments/ to measured cells and claims."""
