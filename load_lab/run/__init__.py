"""`lab k6`: one load, from its start to the verdict."""
