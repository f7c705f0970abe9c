"""Species, scattering processes, QCD models, thermal masses and conserved charges."""
