"""What each part of a target does, ten times a second: threads, connections, sessions."""
