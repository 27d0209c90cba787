"""Where the operations of a mix come from."""
