"""Machines reached over SSH, and this one, as testbeds."""
