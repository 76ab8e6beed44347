"""Searches over listed kernels: what is accepted, and the adapters of an accepted list."""
