"""What a bisection found, as text and as JSON, from one `Material`."""
