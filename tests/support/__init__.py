"""Real servers, reference stores and samples for tests."""
