"""Guests under libvirt: their images, their boot, their console."""
