"""What people see: command line, reports."""
