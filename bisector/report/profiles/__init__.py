"""Two profiles side by side, for people, for machines, and as a flame graph."""
