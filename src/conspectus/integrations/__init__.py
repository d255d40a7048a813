"""Adapters for other frameworks: LangChain, LangGraph, LlamaIndex and others.

Imports bridge, engine and text.
"""
