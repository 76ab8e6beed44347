"""Building kernels on the builders of a lab, with a cache."""
