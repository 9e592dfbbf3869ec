"""Metrics of predictions, generated reasoning and mechanism: one file a family."""
