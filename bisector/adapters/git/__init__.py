"""Git repositories: the only folder that runs git."""
