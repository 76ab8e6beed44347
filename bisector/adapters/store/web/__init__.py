"""What the web server alone asks of the database: who may ask, and whether lists have changed."""
