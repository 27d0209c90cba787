"""Prove what limits a target: give the named part more, or take some away, and measure."""
