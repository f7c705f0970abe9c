"""Workers that share one state: domain decomposition, communication and leader."""
