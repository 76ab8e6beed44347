"""Results of a bisection, as text and as JSON, from one `Material`."""
