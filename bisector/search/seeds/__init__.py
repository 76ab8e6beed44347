"""Which boots have the same random numbers, and when they need others."""
