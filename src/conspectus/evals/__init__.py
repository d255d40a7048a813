"""Evaluation of search and windows on judged queries.

Imports bootstrap, chat, engine, ports, retrieval and text.
"""
