"""This machine and others over SSH: commands, files, channels."""
