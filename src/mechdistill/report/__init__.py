"""Tables, figures, claims and the page: everything drawn from artifacts, nothing typed in."""
