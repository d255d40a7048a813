"""Finding and ranking: from a question to hits, each with the parts of its score."""
