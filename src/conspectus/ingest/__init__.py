"""Writing: from documents to records, index and embeddings, and background jobs.

Imports ports and text.
"""
