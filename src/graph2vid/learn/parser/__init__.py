"""Training of the learned parser (torch); :mod:`graph2vid.text.learned` runs what comes out of it, without torch."""
