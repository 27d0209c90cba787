"""What more load than the target bears does to it, and what a long one does."""
