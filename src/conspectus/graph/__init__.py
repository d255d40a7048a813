"""Names in texts, what they mean, and drawings of graphs: pure functions."""
