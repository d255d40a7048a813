"""Adapters for other frameworks: LangChain, LlamaIndex and OpenAI Agents.

Imports bootstrap, engine and text.
"""
