"""Statistics of samples: comparisons, intervals, outliers, variance components. Pure."""
