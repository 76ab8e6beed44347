"""Text that somebody else wrote, such as a commit's subject: at most so long, and one that can be stored."""

from __future__ import annotations

MAX_SUBJECT_CHARACTERS = 500
"""Of a commit's subject and author: the kernel's are a line of a mail, of at most some 100 characters."""


def cut(text: str, characters: int) -> str:
    """Return a text from elsewhere, at most so long, and one that every database can hold."""
    sound = text.replace("\0", "\ufffd").encode("utf-8", "replace").decode("utf-8")
    return sound if len(sound) <= characters else f"{sound[: characters - 4]} ..."
