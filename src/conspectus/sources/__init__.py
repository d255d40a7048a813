"""Readers of files, chat exports, captions, web pages and connected stores.

Imports ports and text.
"""
