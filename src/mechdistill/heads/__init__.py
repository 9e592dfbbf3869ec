"""Which attention heads carry the two phases: scores, rankings, pools and how far to trust them."""
