"""Arguments of every command: the rules that hold of all of them, and numbers with their ranges."""
