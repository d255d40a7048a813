"""Search: from a query to hits, each with the parts of its score.

Imports graph, ports and text.
"""
