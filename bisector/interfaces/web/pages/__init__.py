"""Pages for people, rendered here; the same data as JSON and CSV by a suffix of the address."""
