"""What is measured of a state, and the files it is kept in."""
