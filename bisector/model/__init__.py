"""What everything speaks of: records, the state folded from them, the commit graph, numbers as text. Pure."""
