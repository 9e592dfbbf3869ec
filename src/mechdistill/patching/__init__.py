"""Causal tests of attention heads: clean and corrupted runs exchange rows or outputs of heads."""
