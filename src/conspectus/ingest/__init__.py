"""Writing: from what a caller hands in to records, index and vectors."""
