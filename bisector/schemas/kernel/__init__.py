"""The tables of `kernels/`: recipes, toolchains, fixups, options, and the rows that cover a release."""
