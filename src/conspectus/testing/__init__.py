"""Suites and honest stand-ins for those who write adapters: subclass a suite, give it your adapter."""
