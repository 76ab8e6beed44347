"""`perfbisect init`: a few questions, then a settings file and an inventory that were tried."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, get_args

import typer

from bisector.errors import ExitCode, RequestError
from bisector.interfaces.cli import options, output
from bisector.interfaces.cli.arguments.questions import Questions, choice
from bisector.interfaces.cli.groups import lab, lab_add
from bisector.schemas.machine.testbed_variables import TestbedKind
from bisector.schemas.settings import SETTINGS_FILE, Settings

if TYPE_CHECKING:
    from bisector.app.first_settings import Address, Answers, MachineBoot

_HERE = "here"

_OPTIONS = "--repo, --testbed, --host, --boot, --key, --builder, --state-dir or --cache-dir"

_NO_HOST = RequestError("--testbed ssh needs a machine", cure="add --host root@box1")

_KINDS = "libvirt: guests on this machine; ssh: machines; local: only this machine, which boots no kernels"


def init(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="Where the files go, and whatever is below it uses them.")
    ] = Path(),
    repo: Annotated[Path | None, typer.Option(metavar="FOLDER", help="The kernel's git repository.")] = None,
    testbed: Annotated[TestbedKind | None, typer.Option(metavar="KIND", help=f"{_KINDS}.")] = None,
    host: Annotated[
        list[str] | None,
        typer.Option(metavar="[USER@]HOST[:PORT]", help="A machine that measures, with ssh; repeatable."),
    ] = None,
    boot: Annotated[
        str | None,
        typer.Option(metavar="HOW", help="How machines boot a kernel: kexec, grub or systemd-boot."),
    ] = None,
    key: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The SSH key that opens machines and builder.")
    ] = None,
    builder: Annotated[
        str | None,
        typer.Option(metavar="[USER@]HOST[:PORT]", help="The machine that compiles; here: this one."),
    ] = None,
    state_dir: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Where bisections are kept.")
    ] = None,
    cache_dir: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Where kernels, images and builds are kept.")
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="Ask nothing: options say what differs from the defaults.")
    ] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace files that are there.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the files; write and try none.")] = False,
    as_json: options.Json = False,
) -> None:
    """Write a settings file and an inventory of machines from a few answers, and try them.

    Each option answers a question. Exit code 3 if a machine does not answer; the files are written then, too.

    Examples:

      perfbisect init

      perfbisect init --repo ~/linux --yes

      perfbisect init --testbed ssh --host root@box1 --host root@box2 --boot kexec --yes --dry-run
    """
    from bisector.app import first_settings
    from bisector.app.machines.check_machines import check_machines

    questions = Questions(asks=not yes)
    questions.require_terminal("init", _OPTIONS)
    if not folder.is_dir():
        raise RequestError(f"{folder}: no such folder", cure="name a folder that exists")
    answers = _answers(questions, repo, testbed, host, boot, key, builder, (state_dir, cache_dir))
    texts = first_settings.files(folder, answers)
    if dry_run:
        _print_files(texts, as_json=as_json)
        return
    _allow_overwriting([path for path in texts if path.exists()], asks=questions.asks, allowed=overwrite)
    wiring = first_settings.write(texts)
    if not as_json:
        print("\n".join(f"{path} is written" for path in texts))
    machines = check_machines(wiring, output.print_note)
    if as_json:
        found = {str(path): text for path, text in texts.items()}
        output.print_json({"files": found, "written": True, "machines": lab.machine_rows(machines)})
    else:
        print(lab.machine_table(machines))
    if not all(machine.ok for machine in machines):
        raise typer.Exit(ExitCode.INFRASTRUCTURE)


def _print_files(texts: Mapping[Path, str], *, as_json: bool) -> None:
    """Print the files that would be written."""
    if as_json:
        output.print_json(
            {"files": {str(p): text for p, text in texts.items()}, "written": False, "machines": []}
        )
    else:
        print("\n".join(f"--- {path}\n{text}" for path, text in texts.items()), end="")


def _allow_overwriting(there: Sequence[Path], *, asks: bool, allowed: bool) -> None:
    """Ask before a file is replaced. Raises RequestError if that must not be."""
    if not there or allowed:
        return
    names = " and ".join(str(path) for path in there)
    if not asks:
        raise RequestError(f"{names}: there already", cure="add --overwrite, or name another folder")
    if not typer.confirm(f"{names}: there already. Replace?", err=True):
        raise RequestError(f"{names}: not replaced", cure="name another folder: perfbisect init FOLDER")


def _answers(
    questions: Questions,
    repo: Path | None,
    testbed: TestbedKind | None,
    hosts: Sequence[str] | None,
    boot: str | None,
    key: Path | None,
    builder: str | None,
    folders: tuple[Path | None, Path | None],
) -> Answers:
    """Return all answers: what options did not say is asked, or the default. Raises RequestError."""
    from bisector.app.first_settings import Answers, MachineBoot

    usual = Settings()
    kept = options.make_wiring().settings.repo
    found = questions.ask(
        "--repo", repo, "Kernel repository (empty: named with each command)", kept, _repository
    )
    kind = questions.ask(
        "--testbed",
        testbed,
        "Testbeds: libvirt (guests here), ssh (machines), local (only this one)",
        "libvirt",
        choice(get_args(TestbedKind)),
    )
    over_ssh = kind == "ssh"
    for option, given in (("--host", hosts), ("--boot", boot)):
        if given and not over_ssh:
            raise RequestError(f"{option} is for machines", cure="leave it out, or say --testbed ssh")
    addresses = " ".join(hosts) if hosts else None
    machines: tuple[Address, ...] = ()
    how: MachineBoot = "kexec"
    if over_ssh:
        machines = questions.ask(
            "--host", addresses, "Machines, as [USER@]HOST[:PORT] ...", None, _addresses, missing=_NO_HOST
        )
        how = questions.ask(
            "--boot",
            boot,
            "How they boot a kernel (kexec, grub, systemd-boot)",
            "kexec",
            choice(get_args(MachineBoot)),
        )
    compiles = questions.ask("--builder", builder, "Builder ('here', or [USER@]HOST[:PORT])", _HERE, _builder)
    opens = None
    if over_ssh or compiles is not None:
        question = "SSH key that opens them (empty: written into the inventory later)"
        opens = questions.ask("--key", key, question, lab_add.usual_key() or "", _key)
    elif key is not None:
        raise RequestError("--key is for machines", cure="leave it out, or name a machine: --host, --builder")
    state, cache = (
        questions.ask(option, given, f"Folder of {what}", default, _folder)
        for option, given, what, default in (
            ("--state-dir", folders[0], "bisections", usual.state_dir),
            ("--cache-dir", folders[1], "kernels, images and builds", usual.cache_dir),
        )
    )
    return Answers(
        found,
        kind,
        machines,
        how,
        compiles,
        None if state == usual.state_dir else state,
        None if cache == usual.cache_dir else cache,
        opens,
    )


def _repository(text: str) -> Path | None:
    from bisector.app.first_settings import check_repository

    if not text:
        return None
    path = Path(text).expanduser().absolute()
    check_repository(path)
    return path


def _addresses(text: str) -> tuple[Address, ...]:
    from bisector.app.first_settings import parse_address

    found = tuple(dict.fromkeys(parse_address(one) for one in text.replace(",", " ").split()))
    if len({one.host for one in found}) < len(found):
        raise RequestError(
            "a machine is named twice", cure=f"name each once; {SETTINGS_FILE} names its inventory"
        )
    if not found:
        raise RequestError("no machine is named", cure="write [USER@]HOST[:PORT], as in root@box1")
    return found


def _builder(text: str) -> Address | None:
    from bisector.app.first_settings import parse_address

    return None if text == _HERE else parse_address(text)


def _key(text: str) -> Path | None:
    return lab_add.key_file(text) if text else None


def _folder(text: str) -> Path:
    return Path(text).expanduser().absolute()
