"""The manifest of a workload, and what it asks of kernels and testbeds."""
