"""Adapters of the `Index` port, and what they share: row changes, BM25 and cosine similarity.

Imports ports and text.
"""
