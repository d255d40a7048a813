"""Text: cleaning, splitting, analysis, hashing and times, as pure functions.

Imports model.
"""
