"""Reports as self-contained HTML pages: no request to anywhere, readable without JavaScript."""
