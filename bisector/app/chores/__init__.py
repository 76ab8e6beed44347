"""Work beside a search: reports at its end, and upkeep by executors."""
