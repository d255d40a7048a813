"""Data types, as frozen dataclasses of the standard library.

Imports errors.
"""
