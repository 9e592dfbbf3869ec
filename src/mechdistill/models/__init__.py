"""Models: families, loading, decoding, and the tap that reads and patches their attention heads."""
