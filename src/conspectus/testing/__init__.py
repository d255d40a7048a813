"""Contract suites, embedders and chat models for tests of your own adapters.

Imports ports.
"""
