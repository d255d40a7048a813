"""Adapters for other frameworks: LangChain, LlamaIndex and OpenAI Agents."""
