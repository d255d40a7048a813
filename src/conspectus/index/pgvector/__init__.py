"""The index in PostgreSQL: words in packed postings, vectors in pgvector, in the database of the records."""
