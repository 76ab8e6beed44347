"""What a bisection found, for people and machines: `text` and `data` of the same `Material`."""
