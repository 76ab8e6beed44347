"""perfbisect finds the commit that made a Linux kernel slower."""

__version__ = "0.1.0"
