"""What `perfbisect try` asks for."""
