"""The power of machines: by their BMC over IPMI or Redfish, or by commands, in stages."""
