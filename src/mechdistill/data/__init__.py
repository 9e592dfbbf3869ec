"""Label spaces, synthetic notes, examples, twins: everything a model reads."""
