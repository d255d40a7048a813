"""Exports of chat platforms: Slack, Discord, IRC logs and JSON Lines, read into channels of messages."""
