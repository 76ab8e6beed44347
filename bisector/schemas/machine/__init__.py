"""Machines of the lab: their host variables, power and console."""
