"""Learning from procedures: losses and training."""
