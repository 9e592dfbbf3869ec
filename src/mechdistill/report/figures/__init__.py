"""The figures, one file a figure or a family; each function takes tables and returns a figure."""
