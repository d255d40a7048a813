"""Permissions: what one person may read and write.

Imports ports and text.
"""
