"""Consoles of machines: by a command, serial over LAN, TCP or netconsole; recorded and watched."""
