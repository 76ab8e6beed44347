"""Nightly series: what is due, what nights have shown, and what follows."""
