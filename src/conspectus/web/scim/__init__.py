"""SCIM 2.0 (RFC 7643, RFC 7644): an identity provider manages users and groups over HTTP.

Imports `access`, `engine` and `model`, and the library `scim2-models` for schemas, filters and patches.
"""
