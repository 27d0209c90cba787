"""What is loaded: the lab's reference app, or another server."""
