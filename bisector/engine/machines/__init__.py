"""Machines that live on between boots: a known kernel decides, and they are given back."""
