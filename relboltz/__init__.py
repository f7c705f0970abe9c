"""relboltz: the relativistic Boltzmann equation of quark-gluon matter."""

__version__ = "0.1.0"
