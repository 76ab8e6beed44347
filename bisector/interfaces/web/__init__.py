"""The web server: `perfbisect web`."""
