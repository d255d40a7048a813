"""Writing: from documents to records, index and embeddings, and background jobs.

Imports graph, ports and text.
"""
