"""Parsers of chat exports: Slack, Discord, IRC logs and JSON Lines, as channels of messages."""
