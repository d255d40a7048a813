"""Entities: extraction, linking, traversal and drawings, as pure functions.

Imports ports and text.
"""
