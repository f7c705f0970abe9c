"""Time steps: their parts, their lengths, and everything that they change."""
