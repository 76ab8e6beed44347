"""The inventory of testbeds that fakes stand in for: guests, since `local` ones boot no kernels."""

from __future__ import annotations


def inventory_of(name: str, more: str = "") -> str:
    """Return an inventory with one such testbed. more: other hosts, as YAML between braces."""
    guest = f"{name}: {{perfbisect_kind: libvirt, perfbisect_clock: wall}}"
    return f"testbeds: {{hosts: {{{guest}{more}}}}}\n"
