"""The embedded index: immutable memory-mapped segments, a tail in memory, and a manifest of the segments."""
