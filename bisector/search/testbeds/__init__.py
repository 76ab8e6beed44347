"""What several testbeds show each by itself."""
