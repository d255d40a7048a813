"""Databases, documents, chunks and transactions: the base of all other records."""
