"""What streams need beyond finding: batches, summaries, events and alerts, as plain functions."""
