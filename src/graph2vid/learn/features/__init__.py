"""Training clip features from procedures: a residual MLP under the losses of :mod:`graph2vid.learn.losses`."""
