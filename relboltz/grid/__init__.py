"""Phase-space nodes, scale factors of expanding matter, and units."""
