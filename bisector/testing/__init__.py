"""Seeded fakes of the ports, shipped for tests and for trying a planner without a kernel."""
