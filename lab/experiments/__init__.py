"""Declared experiments: from experiments/*.toml through measured cells to claims."""
