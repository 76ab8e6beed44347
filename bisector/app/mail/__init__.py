"""Messages that leave the lab: which there are, who gets them, and their delivery."""
