"""What hosts give each other: what is put, what is fetched, what is kept."""
