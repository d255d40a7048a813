"""Users, groups, API keys and grants in SQL."""
