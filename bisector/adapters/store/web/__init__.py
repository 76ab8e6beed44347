"""Queries that only the web server makes: who may ask, and whether lists have changed."""
