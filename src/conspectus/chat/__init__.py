"""The request to a chat model: question, history and context within its tokens.

Imports ports and text.
"""
