"""Care of the lab's machines: whether each is usable, what was found of it, and new ones."""
