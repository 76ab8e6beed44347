"""What `lab check` looks at on a machine, and the steps of its deep form."""
