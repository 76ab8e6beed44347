"""A workload on a booted testbed: deployed, run by the measuring agent, its results fetched."""
