"""Messages that leave the lab: SMTP, signed POSTs, and who gets them."""
