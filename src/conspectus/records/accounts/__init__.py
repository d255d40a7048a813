"""Users, groups, API keys, grants and sessions in SQL."""
