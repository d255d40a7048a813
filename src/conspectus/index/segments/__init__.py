"""The embedded index: immutable memory-mapped segments, a tail in memory, and a manifest that names them."""
