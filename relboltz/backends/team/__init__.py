"""Workers that share one state: how it is cut, what they exchange, who leads them."""
