"""Evaluation: how well search and windows answer judged queries.

Imports bootstrap, chat, engine, ports, retrieval and text.
"""
