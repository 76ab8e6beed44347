"""Mappings of an inventory that have a key `kind`, which says what other keys they may have."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, TypeVar

from pydantic import Field, model_validator

from bisector.errors import nearest
from bisector.schemas.documents.document import shortened, shown
from bisector.schemas.loading import Spec, matching
from bisector.schemas.mail_settings import SecretPath
from bisector.schemas.refusal import WrongKeyError

K = TypeVar("K", bound=Spec)

_PASSWORD_KEYS = ("password", "passwd", "pass", "secret")
_WHERE_INSTEAD = (
    "write it into a file of mode 600 that 'password_file' names, or into a variable of the environment "
    "that 'password_env' names"
)

VariableName = Annotated[
    str, matching("[A-Za-z_][A-Za-z0-9_]{0,99}", "the name of a variable of the environment")
]


class PasswordSource(Spec):
    """Where a password is. It is read when it is needed, and kept nowhere."""

    password_env: VariableName | None = Field(
        default=None, repr=False, description="the variable of the environment with the password"
    )
    password_file: SecretPath | None = Field(
        default=None, repr=False, description="a file of mode 600 with the password"
    )

    @model_validator(mode="after")
    def _has_one(self) -> PasswordSource:
        if (self.password_env is None) == (self.password_file is None):
            raise WrongKeyError("one of 'password_file' and 'password_env' is needed", "password_file")
        return self


def read_kind(kinds: Mapping[str, type[K]], usual: str) -> Callable[[object], K]:
    """Return what reads a mapping as the model that its `kind` names. usual: the kind of one that names none.

    It raises ValueError in our words.
    """

    def read(value: object) -> K:
        if not isinstance(value, dict):
            raise ValueError("must be a mapping of keys to values")
        kind = value.get("kind", usual)
        model = kinds.get(kind) if isinstance(kind, str) else None
        if model is None:
            names = ", ".join(f"'{name}'" for name in kinds)
            raise WrongKeyError(f"must be one of {names} (got {shown(kind)})", "kind")
        for key in map(str, value):
            if key in _PASSWORD_KEYS:
                raise WrongKeyError("no password is kept in an inventory", key, cure=_WHERE_INSTEAD)
            if key not in model.model_fields:
                known = ", ".join(model.model_fields)
                raise WrongKeyError(
                    f"is unknown to the kind '{kind}'{nearest(key[:100], model.model_fields)} "
                    f"(known: {known})",
                    shortened(key),
                    cure="take it out, or write one of the known keys",
                )
        return model.model_validate(value)

    return read
