"""Facts about Linux: which files reach a kernel, its console, its settings, its profiles. Pure."""
