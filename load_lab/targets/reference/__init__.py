"""The reference app: its protocol as a target, its data, and how its layers are verified."""
