"""Transfer of a complete store into another one while it is in use."""
