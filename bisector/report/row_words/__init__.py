"""What people read of the rows of lists: of the queue, of alerts."""
