"""The archive of an exported bisection: its documents, and the limits of what they may say."""
