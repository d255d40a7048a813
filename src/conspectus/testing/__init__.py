"""Contract suites, the kit for connectors, embedders and chat models for tests of your own adapters.

Imports connectors, engine, ports.
"""
