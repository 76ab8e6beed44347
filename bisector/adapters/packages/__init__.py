"""Kernels that others have built: packages and folders, in a list that is searched in place of commits."""
