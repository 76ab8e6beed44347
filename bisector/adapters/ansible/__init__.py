"""Playbooks and the inventory: the only folder that runs Ansible."""
