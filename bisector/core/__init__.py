"""Pure core: no files, no clock, no network, no logging; random numbers come in as a generator."""
