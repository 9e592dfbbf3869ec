"""Whether two methods differ: paired tests over documents and seeds, and marks."""
