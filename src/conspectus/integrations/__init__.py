"""Adapters for other frameworks: LangChain, LangGraph, LlamaIndex and others.

Imports bootstrap, engine and text.
"""
