"""The running stack: two engines behind one interface, what it runs with, its data."""
