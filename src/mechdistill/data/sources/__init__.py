"""Readers of data that a user brings: MIMIC-IV, MIMIC-III, Extreme Classification Repository."""
