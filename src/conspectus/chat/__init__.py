"""What a chat model is given: the question, the turns before it, and the context, within their tokens."""
