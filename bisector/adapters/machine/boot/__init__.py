"""How a machine over SSH is told to boot a kernel once, and what undoes that."""
