"""The tables of `kernels/`: recipes, toolchains, fixups, and the rows that hold for a release."""
