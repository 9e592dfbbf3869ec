"""Verify a results folder against its records and the checkout: `mechdistill audit`."""
