"""`perfbisect lab add`: questions about a machine, then a testbed in the inventory that was tried."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bisector.errors import ExitCode, RequestError
from bisector.interfaces.cli import options, output
from bisector.interfaces.cli.arguments.questions import Questions, choice
from bisector.interfaces.cli.groups import lab as lab_group
from bisector.schemas.documents.document import is_file, why_no_file

if TYPE_CHECKING:
    from bisector.app.first_settings import Address
    from bisector.app.machines.add_machine import Suggested

_USUAL_KEYS = "id_ed25519", "id_ecdsa", "id_rsa"

_OPTIONS = "--host, --key, --fingerprint, --boot, --netboot, --power, --console or --cmdline"

_BOOT_METHODS = ("kexec", "grub", "systemd-boot", "pxe")
"""Those of `schemas.machine.testbed_variables.BootMethod` that boot a machine over SSH."""

_POWER = (
    "What switches its power, as YAML: {kind: ipmi, address: HOST, user: NAME, password_file: FILE}, "
    "{kind: redfish, url: https://HOST, user: NAME, password_file: FILE} or {cycle: [PROGRAM, WORD...]}"
)
_NETBOOT = (
    "Where a network boot finds its files (pxe), as YAML: {folder: FOLDER, url: tftp://HOST, mac: ADDRESS}"
)
_CONSOLE = "What reads its console, as YAML: {kind: sol}, {kind: tcp, ...}, or a command that prints it"


def add(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="What the testbed is called; its address by default.")
    ] = None,
    host: Annotated[
        str | None, typer.Option(metavar="[USER@]HOST[:PORT]", help="Where it answers; the user is root.")
    ] = None,
    key: Annotated[Path | None, typer.Option(metavar="FILE", help="The SSH key that opens it.")] = None,
    known_hosts: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where its host key is pinned. [~/.ssh/known_hosts]")
    ] = None,
    fingerprint: Annotated[
        str | None, typer.Option(metavar="SHA256:...", help="Of its host key, as read on the machine itself.")
    ] = None,
    boot: Annotated[
        str | None,
        typer.Option(metavar="METHOD", help="kexec, grub, systemd-boot or pxe; found out by default."),
    ] = None,
    netboot: Annotated[str | None, typer.Option(metavar="YAML", help=f"{_NETBOOT}.")] = None,
    power: Annotated[str | None, typer.Option(metavar="YAML", help=f"{_POWER}.")] = None,
    console: Annotated[str | None, typer.Option(metavar="YAML", help=f"{_CONSOLE}.")] = None,
    cmdline: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="Command line of kernels, with root=; its own by default."),
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="Ask nothing: options say what is not found out.")
    ] = False,
    no_check: Annotated[bool, typer.Option("--no-check", help="Do not try the result.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the new inventory; write nothing.")
    ] = False,
    lab: options.Lab = None,
    as_json: options.Json = False,
) -> None:
    """Add a machine over SSH to the inventory: it is looked at, its host key confirmed, and the result tried.

    What is in the inventory stays as it is, comments too. Exit code 3 if the machine does not answer, or the
    check finds something wrong; in the last case it is added.

    Examples:

      perfbisect lab add

      perfbisect lab add box3 --host 192.0.2.13 --key ~/.ssh/lab --fingerprint SHA256:... --yes --dry-run
    """
    from bisector.app.machines import add_machine
    from bisector.app.machines.check_machines import check_machines

    questions = Questions(asks=not yes)
    questions.require_terminal("lab add", _OPTIONS)
    wiring = options.make_wiring(lab=lab)
    need = RequestError("lab add needs a machine", cure="add --host root@box1")
    address = questions.ask("--host", host, "Machine, as [USER@]HOST[:PORT]", None, _address(), missing=need)
    inventory = add_machine.inventory_to_change(wiring, address.host)
    called = questions.ask(
        "NAME",
        name,
        "Its name in the inventory",
        address.host,
        partial(add_machine.new_name, wiring, inventory),
    )
    no_key = RequestError("lab add needs an SSH key", cure="add --key FILE")
    key = questions.ask("--key", key, "SSH key that opens it", usual_key(), key_file, missing=no_key)
    pinned_in = (known_hosts or Path("~/.ssh/known_hosts")).expanduser().absolute()
    _confirm_key(questions, address, pinned_in, fingerprint, dry_run=dry_run)
    found = add_machine.look_at(address, key, pinned_in)
    output.print_note(f"{called}: {found.machine}; {found.why}")
    variables: dict[str, Any] = {
        **address.variables(),
        "ansible_ssh_private_key_file": str(key),
        "perfbisect_kind": "ssh",
    }
    if known_hosts is not None:
        variables["perfbisect_known_hosts"] = str(pinned_in)
    variables["perfbisect_boot_method"] = _boot_method(questions, boot, found)

    def check(tried: dict[str, Any]) -> object:
        return add_machine.check_testbed(called, tried, inventory)

    _ask_hardware(questions, variables, check, netboot, power, console, cmdline, found.cmdline)
    path, text = add_machine.changed_inventory(wiring, called, variables)
    if not dry_run:
        wiring = add_machine.write_inventory(wiring, path, text, called)
        output.print_note(f"{path}: '{called}' is added")  # before the check: it may be stopped
    machines = [] if dry_run or no_check else check_machines(wiring, output.print_note, [f"testbed {called}"])
    if as_json:
        made = {"name": called, "variables": variables, "file": str(path), "written": not dry_run}
        output.print_json({**made, "machines": lab_group.machine_rows(machines)})
    elif dry_run:
        print(f"--- {path}\n{text}", end="")
    elif machines:
        print(lab_group.machine_table(machines))
    if not all(machine.ok for machine in machines):
        raise typer.Exit(ExitCode.INFRASTRUCTURE)


def _ask_hardware(
    questions: Questions,
    variables: dict[str, Any],
    check: Callable[[dict[str, Any]], object],
    netboot: str | None,
    power: str | None,
    console: str | None,
    cmdline: str | None,
    own_cmdline: str,
) -> None:
    """Add to the variables what cannot be found out: network boot, power, console, command line.

    check: raises for a wrong answer, at its question, given all variables up to it.
    """

    def tried(variable: str, read: Callable[[str], Any]) -> Callable[[str], Any]:
        def answer(text: str) -> Any:  # noqa: ANN401 - what YAML holds
            value = read(text)
            if value:
                check({**variables, variable: value})
            return value

        return answer

    if netboot is not None or variables["perfbisect_boot_method"] == "pxe":
        unknown = RequestError(
            "the boot method pxe needs the folder from which the machine boots",
            cure=f"add --netboot: {_NETBOOT}",
        )
        variables["perfbisect_netboot"] = questions.ask(
            "--netboot", netboot, _NETBOOT, None, tried("perfbisect_netboot", _mapping), missing=unknown
        )
    asked: tuple[tuple[str, str, str | None, str, Callable[[str], Any]], ...] = (
        ("--power", "perfbisect_power", power, f"{_POWER} (empty: none)", _mapping),
        ("--console", "perfbisect_console", console, f"{_CONSOLE} (empty: none)", _console),
        ("--cmdline", "perfbisect_cmdline", cmdline, f"Command line (empty: its own, {own_cmdline})", str),
    )
    for option, variable, given, question, read in asked:
        value = questions.ask(option, given, question, "", tried(variable, read))
        if value:
            variables[variable] = value


def _confirm_key(
    questions: Questions, address: Address, pinned_in: Path, fingerprint: str | None, *, dry_run: bool
) -> None:
    """Have a host key that is not known confirmed by a person or by its fingerprint, and pin it."""
    from bisector.app.machines import add_machine

    key = add_machine.unpinned_key(address, pinned_in)
    if key is None:
        return
    shown = f"{key.kind} {key.fingerprint}"
    how = "on the machine: ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub"
    if fingerprint is not None:
        if fingerprint.removeprefix("SHA256:") != key.fingerprint.removeprefix("SHA256:"):
            raise RequestError(
                f"{address.host} shows another host key: {shown}",
                details=f"wanted {fingerprint}",
                cure=f"compare with what it is {how}; if that is right, somebody is in between",
            )
    elif not questions.asks:
        raise RequestError(
            f"the host key of {address.host} is not known: {shown}",
            cure=f"compare it {how}; then add --fingerprint {key.fingerprint}",
        )
    elif not typer.confirm(f"{address.host} shows the host key {shown}. Is that its own ({how})?", err=True):
        raise RequestError(f"the host key of {address.host} is not trusted", cure=f"look {how}")
    if dry_run:
        raise RequestError(
            f"--dry-run writes nothing, and the host key of {address.host} is not pinned",
            details=f"{key.name} {key.kind} {key.text}",
            cure=f"add that line to {pinned_in}",
        )
    add_machine.pin(pinned_in, key)


def _boot_method(questions: Questions, given: str | None, found: Suggested) -> str:
    none = RequestError(
        f"no boot method works there: {found.why}", cure="install kexec-tools there, or --boot"
    )
    question = f"How it boots a kernel once ({', '.join(_BOOT_METHODS)})"
    return questions.ask("--boot", given, question, found.method or None, choice(_BOOT_METHODS), missing=none)


def _address() -> Callable[[str], Address]:
    from bisector.app.first_settings import parse_address

    return parse_address


def usual_key() -> str | None:
    """Return the first of the keys that OpenSSH tries by itself, if this user has one."""
    paths = (Path("~/.ssh").expanduser() / name for name in _USUAL_KEYS)
    return next((str(path) for path in paths if path.exists()), None)


def key_file(text: str) -> Path:
    """Return the file of a private key. Raises RequestError if there is none."""
    path = Path(text).expanduser().absolute()
    if not is_file(path):
        raise RequestError(f"{path}: {why_no_file(path)}", cure="name the private key, not its .pub")
    return path


def _mapping(text: str) -> Any:  # noqa: ANN401 - what YAML holds; the inventory's own check reads it
    from bisector.schemas.documents.yaml_reader import parse_yaml

    value = parse_yaml(text, "this text") if text else None
    if value is not None and not isinstance(value, dict | list):
        raise RequestError(
            f"'{text[:40]}' is not a mapping", cure="write {KEY: VALUE, ...}, as it is asked for"
        )
    return value


def _console(text: str) -> Any:  # noqa: ANN401 - as above
    if text.lstrip().startswith(("{", "[")):
        return _mapping(text)
    return shlex.split(text)
