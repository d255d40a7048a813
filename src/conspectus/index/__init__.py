"""Adapters of the `Index` port, and what they share: changes to ranges, BM25 and cosine."""
