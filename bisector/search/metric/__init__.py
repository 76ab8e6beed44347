"""The deciding metric: the units in which its levels are compared, and the steps in which it moves."""
