"""The makers of the bundled samples: ``python -m tools.sample.make``, ``python -m tools.sample.make_video``."""
