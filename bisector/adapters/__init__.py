"""One file a technology, each behind a port of `bisector.ports`."""
