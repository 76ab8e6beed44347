"""pydantic at the border: request, workload, recipe, lab, settings; unknown keys are refused."""
