"""What the archive of an exported bisection holds."""
