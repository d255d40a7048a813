"""Chat requests: message, history and context within the token budget. Imports ports and text."""
