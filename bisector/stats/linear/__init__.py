"""Linear models: sums of products and what is left of them."""
