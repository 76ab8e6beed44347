"""Who may have which share of the testbeds: turns, and machine hours."""
