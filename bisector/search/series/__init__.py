"""Nightly series: is a suspect real?"""
