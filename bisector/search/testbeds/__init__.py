"""What several testbeds tell each by itself."""
