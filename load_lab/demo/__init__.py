"""`lab demo`: three variants of the reference app, each loaded until it breaks."""
