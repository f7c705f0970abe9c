"""What exists and what scatters: species, processes, QCD, thermal masses, conserved charges."""
