"""What tests tell apart: sets of commits, and the commits that a suspect is compared with."""
