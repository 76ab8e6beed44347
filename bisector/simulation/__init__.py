"""The simulator: the real planner on synthetic histories, in virtual time.

A user learns from it, before burning lab time, whether an effect can be found under a noise and what it will
cost; the search benchmark and the calibration tests run on it.
"""
