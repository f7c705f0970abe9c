"""The nodes of phase space, scale factors of expanding matter, units."""
