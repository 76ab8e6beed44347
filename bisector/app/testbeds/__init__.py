"""Which testbeds of the lab are used, and how they are held while they are."""
