"""The running stack: two engines behind one interface, its settings, its data."""
