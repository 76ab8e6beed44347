"""Mails: what may be sent, the texts of each kind, and their form on the wire."""
