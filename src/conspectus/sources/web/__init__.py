"""Pages and webhooks: address policy, requests, limits."""
