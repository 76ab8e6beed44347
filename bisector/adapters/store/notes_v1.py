"""Records of state files before version 2: their facts stood beside them, as JSON texts in a JSON object.

Keys of such a note, each with a text. With `Built`: 'kernel' (JSON), 'details'. With `Booted`: 'facts'
(JSON), 'console', 'overhead', 'workload', 'image', 'details'. With `Ran`: 'raw', 'guest_seconds'. With
`RunFailed`: 'details'. With `Left`: 'monitors' (JSON, a list).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

NO_NOTE = "{}"
"""The value of the column since version 2."""

_JSON = frozenset({"kernel", "facts", "monitors"})
_NUMBERS = frozenset({"overhead", "guest_seconds"})


def with_note(body: Mapping[str, Any], note: str) -> dict[str, Any]:
    """Return a stored record as JSON values with its note's facts as fields of its own."""
    if note == NO_NOTE:
        return dict(body)
    facts = {key: _value(key, text) for key, text in json.loads(note).items()}
    return {**body, **{key: value for key, value in facts.items() if value is not None}}


def _value(key: str, text: str) -> Any:  # noqa: ANN401 - JSON values
    """Return one fact; None where it was unknown."""
    if key in _JSON:
        return json.loads(text) if text else None
    if key in _NUMBERS:
        try:
            return float(text)
        except ValueError:
            return None
    return text
