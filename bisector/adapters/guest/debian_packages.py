"""Debian packages for guests: from wherever this machine's apt gets its own."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from bisector.adapters.system.command import find_program, run_command, search_path
from bisector.adapters.system.host_requirements import install
from bisector.errors import InfrastructureError, RequestError

PACKAGES = ("openssh-server", "python3", "iproute2", "procps")
"""Packages of every guest beside the essential ones: a way in, Ansible's interpreter, tools for workloads."""

_BUILD_SECONDS = 1800.0
"""Downloads 40 MB and configures 150 packages: 30 s on an idle machine, minutes on a busy one."""

_UPDATE_SECONDS = 300.0
"""Timeout of apt-get update over a slow line: some 30 MB."""

_NAMESPACE = (
    *("unshare", "--user", "--map-root-user", "--map-auto", "--mount", "--kill-child"),
    *("--setgroups", "allow"),
)
"""Root among ids of its own, for whom files of packages have owners; nobody outside (util-linux 2.38)."""


def bootstrap(work: Path, packages: Sequence[str], target: Path, *options: str) -> None:
    """Make a small Debian with these packages of this machine's own archives. options: of mmdebstrap.

    work: a folder for what apt is told, and for the Debian while it is made. Raises InfrastructureError.
    """
    namespace = root_namespace()
    listed = _lists()
    if not listed.strip() and os.geteuid() == 0:  # a fresh machine or container has no lists yet
        run_command(["apt-get", "update"], timeout=_UPDATE_SECONDS)
        listed = _lists()
    suite, sources = apt_sources(listed)
    (work / "sources.list").write_text("".join(f"{line}\n" for line in sources), encoding="utf-8")
    (work / "apt.conf").write_text(
        apt_options(run_command(["apt-config", "dump", "Acquire"]).output), encoding="utf-8"
    )
    run_command(
        [
            *namespace,
            "mmdebstrap",
            "--mode=root",
            # It runs when the options' hooks have emptied the target: apt would empty this machine's lists.
            "--skip=cleanup/apt",
            "--variant=essential",
            f"--include={','.join(packages)}",
            "--aptopt=Apt::Install-Recommends false",
            f"--aptopt={work / 'apt.conf'}",
            *(f"--dpkgopt=path-exclude=/usr/share/{part}/*" for part in ("man", "doc", "info", "locale")),
            *options,
            suite,
            str(target),
            str(work / "sources.list"),
        ],
        # Made there, as /tmp may be small, or mounted noexec; dpkg and mke2fs are not in every user's PATH.
        env={"PATH": search_path(), "TMPDIR": str(work)},
        timeout=_BUILD_SECONDS,
    )


def root_namespace() -> Sequence[str]:
    """Return what goes before a command that needs root among files of its own; nothing for root.

    Raises InfrastructureError where an ordinary user may not have that, with what would allow it.
    """
    if os.geteuid() == 0:
        return ()
    tried = run_command([*_NAMESPACE, "true"], check=False)
    if tried.code == 0:
        return _NAMESPACE
    cure = "as root: 'usermod --add-subuids FIRST-LAST --add-subgids FIRST-LAST USER', with 65,536 ids that "
    cure += "nobody has in /etc/subuid; where user namespaces are forbidden, allow them"
    raise InfrastructureError(
        "this user has no user namespace with ids of its own, in which a guest image is built",
        details=tried.output.strip(),
        cure=cure if find_program("newuidmap") is not None else install("uidmap"),
    )


def remove_made(folder: Path) -> None:
    """Remove what an interrupted `bootstrap` left, whose files may have owners of the namespace."""
    # One file system: whatever should still be mounted there is this machine's.
    run_command([*root_namespace(), "rm", "-rf", "--one-file-system", folder], check=False)


def check_packages(packages: Sequence[str]) -> None:
    """Raise RequestError for packages that no archive of this machine has; where apt knows nothing, never.

    Without lists it still knows what is installed, so that alone says nothing of the rest.
    """
    if not packages or shutil.which("apt-cache") is None or not _lists().strip():
        return
    known = set(_KNOWN.findall(run_command(["apt-cache", "policy", *packages, *PACKAGES]).output))
    missing = [name for name in packages if name not in known]
    if missing and known & set(PACKAGES):
        raise RequestError(
            f"no archive of this machine has the package '{missing[0]}', which a guest would need",
            details=f"missing: {', '.join(missing)}; required: {', '.join(packages)}",
            cure="mend 'requires: packages' in the workload's manifest, or run 'apt-get update'",
        )


_KNOWN = re.compile(r"^(\S+):\n(?:  .*\n)??  Candidate: (?!\(none\))", re.MULTILINE)
"""A name, and a version that can be installed, in the output of 'apt-cache policy'."""

_TARGET = "$(ORIGIN)|$(SUITE)|$(CODENAME)|$(REPO_URI)|$(COMPONENT)|$(SIGNED_BY)"


def _lists() -> str:
    """Return apt's own list of the indexes that it has, a line each as `_TARGET` says."""
    return run_command(["apt-get", "indextargets", "--format", _TARGET, "Created-By: Packages"]).output


def apt_sources(targets: str) -> tuple[str, Sequence[str]]:
    """Return (suite, lines for sources.list) from apt's own list of indexes, written as `_TARGET` says.

    Only the distribution's own archives are taken (origin Debian or Ubuntu, no backports). Other archives
    are ignored. Raises InfrastructureError when there is none.
    """
    suites: dict[str, None] = {}
    found: dict[tuple[str, str, str], dict[str, None]] = {}
    for line in targets.splitlines():
        origin, _, codename, uri, component, signed = (*line.split("|"), "", "", "", "", "", "")[:6]
        if origin not in ("Debian", "Ubuntu") or "backports" in codename:
            continue
        options = f"[signed-by={signed}] " if signed.startswith("/") else ""
        suites[codename] = None
        found.setdefault((options, uri, codename), {})[component] = None
    if not found:
        raise InfrastructureError(
            "apt knows no archive of Debian or Ubuntu to build the guest image from",
            details=targets[:500],
            cure="as root: 'apt-get update'; and look at /etc/apt/sources.list and sources.list.d",
        )
    base = min(suites, key=len)  # 'bookworm' rather than 'bookworm-security'
    lines = [
        f"deb {options}{uri} {codename} {' '.join(parts)}"
        for (options, uri, codename), parts in found.items()
    ]
    return base, lines


def apt_options(dump: str) -> str:
    """Return those lines of `apt-config dump Acquire` that say how this machine reaches its archives."""
    wanted = ("Acquire::http", "Acquire::https", "Acquire::ftp", "Acquire::Retries", "Acquire::Force")
    lines = [
        line for line in dump.splitlines() if line.startswith(wanted) and not line.rstrip().endswith('"";')
    ]
    return "".join(f"{line}\n" for line in lines) or "# nothing special\n"
