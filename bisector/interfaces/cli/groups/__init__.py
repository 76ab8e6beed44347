"""Commands with commands of their own: kernel, lab, settings, workload."""
