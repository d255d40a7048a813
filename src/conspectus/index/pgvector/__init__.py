"""The index in PostgreSQL: packed postings for keywords and pgvector, in the database of the records."""
