"""What is kept: bisections with their records, calibrations."""
