"""The lab measures a server that is known, and says how far off it was."""
