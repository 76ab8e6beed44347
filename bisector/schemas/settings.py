"""Settings: `perfbisect.toml`, the environment (PERFBISECT_<KEY>), the command line; later ones override."""

from __future__ import annotations

import getpass
import os
import socket
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import platformdirs
from pydantic import AfterValidator, BeforeValidator, Field, PlainValidator, ValidationError

from bisector.errors import RequestError, nearest
from bisector.schemas.database_url import DatabaseUrl, database_url
from bisector.schemas.documents.document import (
    Key,
    exists,
    expand_user,
    is_file,
    nearest_line,
    read_document,
    shortened,
    shown_path,
    why_no_file,
)
from bisector.schemas.documents.toml_reader import toml_lines
from bisector.schemas.loading import Argument, Spec, load_toml, matching
from bisector.schemas.mail_settings import (
    PASSWORD_VARIABLE,
    SECRET_VARIABLE,
    MailSettings,
    WebhookSettings,
)
from bisector.schemas.ranges import Alpha, CacheGib, Hours, Jobs, Real
from bisector.schemas.refusal import refusal
from bisector.schemas.web_settings import ServerUrl, WebSettings

SETTINGS_FILE = "perfbisect.toml"
VARIABLE_PREFIX = "PERFBISECT_"
TOKEN_VARIABLE = "PERFBISECT_TOKEN"  # noqa: S105 - its name
"""The secret itself is no setting: no command shows it."""
_NO_SETTINGS = frozenset({TOKEN_VARIABLE, PASSWORD_VARIABLE, SECRET_VARIABLE})
TABLES = ("web", "mail", "webhook")
"""Settings that only a file can have."""

_PATHS = ("repo", "lab", "state_dir", "cache_dir", "lock_dir", "token_file")


def _lock_dir() -> Path:
    """Return the same folder for every user of this machine: Debian's for locks, else the temporary one."""
    usual = Path("/run/lock")
    everybody = usual.is_dir() and usual.stat().st_mode & stat.S_IWOTH
    return (usual if everybody else Path("/tmp")) / "perfbisect"  # noqa: S108 - made with the sticky bit


def usual_state_dir() -> Path:
    """Return the state folder of this user where none is named."""
    return Path(platformdirs.user_state_dir("perfbisect"))


def _person() -> str:
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a container's user without an entry in /etc/passwd
        user = str(os.getuid())
    return f"{user}@{socket.gethostname()}"


NonEmpty = Annotated[Argument, Field(min_length=1)]


CapHours = Annotated[Real, Field(gt=0, le=1e6)]


def _caps(value: object) -> object:
    """Read what a variable has: 'nightly=40, weekly=10'."""
    if not isinstance(value, str):
        return value
    pairs = [part.rpartition("=") for part in value.split(",")]
    return {owner.strip(): hours.strip() for owner, _, hours in pairs}


def _not_empty(value: object) -> object:
    """Refuse an empty text, which a Path shows as '.', the working folder."""
    if value == "":
        raise ValueError("must be the path of a file or folder, and is empty")
    return value


def _a_path(value: Path) -> Path:
    if "\0" in str(value):
        raise ValueError("must be the path of a file or folder")
    try:
        value.expanduser()
    except RuntimeError as error:
        raise ValueError("there is no such user's home") from error
    return value


FilePath = Annotated[Path, BeforeValidator(_not_empty), AfterValidator(_a_path)]

Mirror = Annotated[str, matching(r"(https?://|file:///)\S{1,1000}", "an address: https://... or file:///...")]


ArtefactsAddress = Annotated[
    str,
    matching(
        r"/\S{0,1000}|https?://\S{1,1000}",
        "a folder that the hosts share (/srv/perfbisect), or an address: https://...",
    ),
]


class Settings(Spec):
    """Settings of every bisection here. Relative paths in the file start at the file's folder."""

    described_in = "docs/reference/settings.md"

    repo: FilePath | None = Field(default=None, description="the kernel's git repository")
    workload: NonEmpty | None = Field(default=None, description="the workload when none is named")
    recipe: NonEmpty = Field(
        default="auto", description="how a commit becomes a kernel; auto: the smallest that serves"
    )
    lab: FilePath | None = Field(
        default=None, description="an Ansible inventory; unset: one guest on this machine"
    )
    state_dir: FilePath = Field(default_factory=usual_state_dir, description="the folder of bisections")
    cache_dir: FilePath = Field(
        default_factory=lambda: Path(platformdirs.user_cache_dir("perfbisect")),
        description="the folder of kernels, images and whatever else can be made anew",
    )
    lock_dir: FilePath = Field(
        default_factory=_lock_dir, description="for the locks of hosts and testbeds; one for a machine"
    )
    database: Annotated[DatabaseUrl, PlainValidator(database_url)] | None = Field(
        default=None,
        repr=False,  # it may hold a password
        description="postgresql://USER@HOST/NAME for bisections; unset: a file in state_dir",
    )
    owner: NonEmpty = Field(default_factory=_person, description="who begins and changes bisections here")
    artefacts: ArtefactsAddress | None = Field(
        default=None,
        description="where hosts share kernels and output: /FOLDER or https://HOST; unset: nowhere",
    )
    cache_gib: CacheGib = Field(
        default=10, description="GiB of kernels in cache_dir; the least recently used go first"
    )
    caps: Annotated[dict[NonEmpty, CapHours], BeforeValidator(_caps)] = Field(
        default={},
        description="a table: owner = machine hours in seven days, then its bisections wait; as a "
        "variable: OWNER=HOURS,OWNER=HOURS",
    )
    jobs: Jobs | None = Field(default=None, description="parallel compilers; unset: as many as CPUs")
    toolchain_mirror: Mirror | None = Field(
        default=None, description="where archives of toolchains are: https://..., file:///..."
    )
    health_checks: Literal["workers", "always", "never"] = Field(
        default="workers", description="who checks testbeds before work: workers, 'start' as well, nobody"
    )
    health_pause_hours: Hours = Field(
        default=8.0, description="a testbed that was unused for so long is checked before work"
    )
    health_commit: NonEmpty | None = Field(
        default=None, description="the commit that checks boot; unset: the good end of a testbed's bisection"
    )
    alpha: Alpha = Field(default=0.05, description="how often a proven culprit may be wrong")
    server: ServerUrl | None = Field(
        default=None, description="https://HOST of a 'perfbisect web' that commands ask; unset: this machine"
    )
    token_file: FilePath | None = Field(
        default=None, description="a file of mode 600 with the token for the server; or PERFBISECT_TOKEN"
    )
    web: WebSettings | None = Field(
        default=None, description="a table: what requests to 'perfbisect web' may name (how-to/serve.md)"
    )
    mail: MailSettings | None = Field(
        default=None, description="a table: the mail server, and who gets reports (how-to/mail.md)"
    )
    webhook: WebhookSettings | None = Field(
        default=None, description="a table: an address that receives every event (how-to/mail.md)"
    )

    def hours_allowed(self, owner: str, budget: float) -> float:
        """Return the machine hours a week of an owner with a budget: that, or a cap that is smaller."""
        return min(budget, self.caps.get(owner, budget))


def working_folder() -> Path:
    """Return the folder that this process works in. Raises RequestError if it was removed."""
    try:
        return Path.cwd()
    except OSError as error:
        raise RequestError(
            f"the working folder cannot be had: {error.strerror}", cure="change to a folder that exists: cd ~"
        ) from error


def find_settings_file(start: Path) -> Path | None:
    """Return the nearest perfbisect.toml in `start` or above it."""
    for folder in (start, *start.parents):
        if exists(folder / SETTINGS_FILE) or (folder / SETTINGS_FILE).is_symlink():
            return folder / SETTINGS_FILE
    return None


def load_settings(
    config: Path | None = None,
    overrides: Mapping[str, Any] | None = None,
    *,
    start: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> Settings:
    """Merge file, environment and command line. None in `overrides`: the option is not given.

    Raises RequestError that names the file (or variable), the key, and the nearest known key.
    """
    return load_with_sources(config, overrides, start=start, environment=environment)[0]


def load_with_sources(
    config: Path | None = None,
    overrides: Mapping[str, Any] | None = None,
    *,
    start: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> tuple[Settings, dict[str, str]]:
    """Do the same; return in words, too, where each value that is no default comes from."""
    environment = os.environ if environment is None else environment
    if config is not None and not exists(config):
        raise RequestError(
            f"--config {shown_path(config)}: {why_no_file(config)}",
            cure=f"name a settings file, or leave it out: {SETTINGS_FILE} is looked for upwards from here",
        )
    path = config if config is not None else find_settings_file((start or working_folder()).resolve())
    values: dict[str, Any] = {}
    if path is not None:
        values = load_toml(path, Settings).model_dump(exclude_unset=True)
        for key in values.keys() & set(_PATHS):
            if values[key] is not None:
                values[key] = path.resolve().parent / expand_user(values[key])
    sources = dict.fromkeys(values, shown_path(path) if path is not None else "")
    for more, source in (
        (_from_environment(environment), "the variable {}"),
        ({k: v for k, v in (overrides or {}).items() if v is not None}, "the command line"),
    ):
        values.update(more)
        sources.update({key: source.format(f"{VARIABLE_PREFIX}{key.upper()}") for key in more})
    try:
        settings = Settings.model_validate(values)
    except ValidationError as error:
        raise refusal(
            error, Settings, lambda key: sources.get(key[0], ""), described_in=Settings.described_in
        ) from error
    paths = {
        key: expand_user(value).absolute()
        for key in _PATHS
        if isinstance(value := getattr(settings, key), Path)
    }
    return settings.model_copy(update=paths), sources


def place_of(key: Key, sources: Mapping[str, str]) -> str:
    """Return where a value stands: 'FILE:LINE', or as `load_with_sources` has it; '' for a default."""
    source = sources.get(key[0], "")
    if not is_file(Path(source)):
        return source
    return f"{source}:{nearest_line(dict(toml_lines(read_document(Path(source)))), key)}"


def _from_environment(environment: Mapping[str, str]) -> dict[str, str]:
    known = {f"{VARIABLE_PREFIX}{name.upper()}": name for name in Settings.model_fields if name not in TABLES}
    values = {}
    for variable, text in environment.items():
        if variable in known:
            if text:
                values[known[variable]] = text
        elif (
            variable not in _NO_SETTINGS
            and variable.startswith(VARIABLE_PREFIX)
            and (hint := nearest(variable, known))
        ):
            # Other programs may use the prefix: only a name close to one of ours is surely a mistake.
            raise RequestError(
                f"unknown environment variable '{shortened(variable)}'{hint}",
                cure="unset it, or mend its name",
            )
    return values
