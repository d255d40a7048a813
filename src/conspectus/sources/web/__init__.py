"""Web pages and webhooks: address policy, requests and limits."""
