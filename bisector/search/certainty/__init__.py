"""How certain a statement is."""
