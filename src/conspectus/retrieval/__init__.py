"""Search: from a query to hits, each with the parts of its score.

Imports graph, ports, text and time_expressions.
"""
