"""Databases, documents, chunks and transactions: what every other part of the records stands on."""
