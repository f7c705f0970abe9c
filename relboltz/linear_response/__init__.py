"""The linearised collision term: transport coefficients from events around equilibrium."""

from .coefficients import transport_coefficients

__all__ = ["transport_coefficients"]
