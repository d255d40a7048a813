"""Captions: summaries, events and alerts, as functions without a store.

Imports ports and text.
"""
