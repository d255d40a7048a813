"""The context engine for language models."""
