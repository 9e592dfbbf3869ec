"""Greedy answers of a model that a server holds, instead of one in this process."""
