"""Traces that models write: generation, parsing, storage."""
