"""Moving everything of one store into another while it answers and is written to."""
