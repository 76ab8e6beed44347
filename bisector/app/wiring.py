"""The wiring: settings become real adapters, each made once and passed down to the use cases.

Adapters are imported where they are made: `perfbisect --help` must not wait for libvirt or numpy.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from bisector.errors import RequestError
from bisector.resources import resource
from bisector.schemas.documents.document import expand_user
from bisector.schemas.settings import Settings

if TYPE_CHECKING:
    from bisector.adapters.ansible.runner import Ansible
    from bisector.adapters.artefacts.exchange import Exchange
    from bisector.adapters.build.builder import KernelBuilder
    from bisector.adapters.build.kernel_cache import KernelCache
    from bisector.adapters.build.kernel_share import KernelShare
    from bisector.adapters.git.trees import KernelTrees
    from bisector.adapters.store.database import Database
    from bisector.adapters.system.machine_locks import MachineLock
    from bisector.ports import Fix, Progress, Source, Testbed
    from bisector.schemas.lab import BuilderSpec, Lab, TestbedSpec
    from bisector.schemas.request import Request
    from bisector.store_ports import Coordinator, Store

Stop = Callable[[], bool]
"""Asked while something long runs; True ends it and raises Interrupted."""


class SystemClock:
    """ports.Clock: this host's."""

    def now(self) -> float:
        """Return seconds since the epoch."""
        return time.time()


class Wiring:
    """The adapters of one call of the program, for its settings. Each is made when it is first needed."""

    def __init__(self, settings: Settings, note: Progress = lambda text: None) -> None:
        """note: called with what takes long before a command can do its work."""
        self.settings, self.note = settings, note
        self.doing = "no bisection"  # told to others who wait for what we hold
        self.clock = SystemClock()
        self.stop = threading.Event()  # of what executes: set when it is told to end
        self.patience: float | None = None  # seconds for a database server, as of `open_database`

    @property
    def repo(self) -> Path:
        """The repository of the settings, else this folder's."""
        return self.settings.repo or Path.cwd()

    @property
    def has_store(self) -> bool:
        """Whether there is a database of bisections; asking for the store would make one."""
        return self.settings.database is not None or self._store_path.exists()

    @property
    def _store_path(self) -> Path:
        return self.settings.state_dir / "perfbisect.sqlite"

    @cached_property
    def store(self) -> Store:
        """The bisections of the settings' database, else of the state folder."""
        from bisector.adapters.store.sql_store import SqlStore

        return SqlStore(self.database)

    @cached_property
    def coordinator(self) -> Coordinator:
        """Who may use what, in the database of the bisections."""
        from bisector.adapters.store.sql_coordinator import SqlCoordinator

        return SqlCoordinator(self.database)

    @property
    def shared_coordinator(self) -> Coordinator | None:
        """The coordinator of a database server, which other hosts use too; None with a state file."""
        return None if self.settings.database is None else self.coordinator

    @cached_property
    def database(self) -> Database:
        """The database of bisections, with the tables of this version."""
        from bisector.adapters.store.open_database import open_server, open_state_file

        if self.settings.database is not None:
            return open_server(self.settings.database, self.note, lambda: self.stop.is_set(), self.patience)
        return open_state_file(self._store_path, self._check_nothing_runs, self.note)

    def connect_database(self) -> Database:
        """Return the same, whatever version its tables are of."""
        from bisector.adapters.store.open_database import connect

        return connect(self.settings.database or self._store_path, self.note)

    def _check_nothing_runs(self) -> None:
        """Raise RequestError while a perfbisect of an earlier version writes to the state file."""
        from bisector.engine.state_lock import find_holder

        holder = find_holder(self.settings.state_dir)
        if holder is not None:
            raise RequestError(
                f"the state file {self._store_path} is of an earlier version, and {holder}",
                cure="wait until it ends; then any command converts the file",
            )

    @cached_property
    def lab(self) -> Lab:
        """The lab's inventory. Raises RequestError naming the host and variable that is wrong."""
        return self.read_lab()

    def read_lab(self, *, may_lack_testbeds: bool = False) -> Lab:
        """Return the lab as its inventory is now. Raises as `lab`; may_lack_testbeds: not for that reason."""
        from bisector.adapters.ansible.inventory import default_inventory, read_lab

        inventory = self.settings.lab or default_inventory()
        return read_lab(inventory, self.settings.cache_dir, may_lack_testbeds=may_lack_testbeds)

    @cached_property
    def kernel_cache(self) -> KernelCache:
        """The kernels that were built."""
        from bisector.adapters.build.kernel_cache import KernelCache

        return KernelCache(self.settings.cache_dir / "kernels")

    @cached_property
    def exchange(self) -> Exchange | None:
        """What hosts give each other; None where the settings name no artefact store."""
        from bisector.adapters.artefacts.exchange import Exchange
        from bisector.adapters.artefacts.open_artefacts import open_artefacts

        if self.settings.artefacts is None:
            return None
        return Exchange(open_artefacts(self.settings), self.settings.cache_dir / "artefacts", self.note)

    def source(self, repo: str | Path | None = None) -> Source:
        """Return a kernel repository, by default that of the settings. Raises RequestError if it is none."""
        from bisector.adapters.git.source import GitSource

        return GitSource(expand_user(repo or self.repo), cache_dir=self.settings.cache_dir / "graphs")

    def source_of(self, request: Request) -> Source:
        """Return the repository of a request, trusted if the user did. Raises RequestError as `source`."""
        if request.trust_repo:
            self.trust(Path(request.repo))
        return self.source(request.repo)

    def trust(self, repo: Path) -> None:
        """Have a repository read that belongs to another user."""
        from bisector.adapters.git.repository import trust

        trust(expand_user(repo))

    def trees(self, repo: str | Path | None = None) -> KernelTrees:
        """Return the trees of a repository, with patches and edits put into them where builds keep theirs."""
        from bisector.adapters.git.trees import KernelTrees, patched_trees

        return KernelTrees(Path(repo or self.repo), patched_trees(self.settings.cache_dir))

    def known_fixes(self, repo: str | Path, commits: Sequence[str]) -> tuple[Fix, ...]:
        """Return what `--with-fix` names, REV or REV:GUILTY each. Raises RequestError."""
        from bisector.adapters.git.backports import find_fix

        return tuple(find_fix(Path(repo).expanduser(), one) for one in commits)

    def ansible(self, stop: Stop | None = None) -> Ansible:
        """Return what runs the playbooks on the lab."""
        from bisector.adapters.ansible.runner import Ansible

        return Ansible(resource("playbooks"), self.lab.inventory, stop, self.lab.builders_here)

    def builder(
        self,
        repo: str | Path | None = None,
        name: str | None = None,
        *,
        stop: Stop | None = None,
        install: bool = False,
        share: KernelShare | None = None,
    ) -> KernelBuilder:
        """Return a builder of the lab, its first unless named, for a repository.

        install: whether it may install the Debian packages that it lacks; share: see `KernelBuilder`.
        """
        from bisector.adapters.build.builder import KernelBuilder

        lab = self.lab
        if not lab.builders:
            raise RequestError(
                f"the inventory {lab.inventory} has no host in the group 'builders'",
                cure="add one to it; 'perfbisect lab list' shows what it has",
            )
        from bisector.adapters.machine.physical_hosts import system_name
        from bisector.app.needed_files import needed_files

        host = lab.builder(name) if name else lab.builders[0]
        machine = self.host_lock(host, stop)
        return KernelBuilder(
            repository=Path(repo or self.repo),
            cache=self.settings.cache_dir,
            ansible=self.ansible(stop),
            host=host.name,
            system=system_name(host.connection),
            jobs=self.settings.jobs or host.variables.jobs,
            mirror=self.settings.toolchain_mirror,
            install=install,
            in_turn=machine.shared,
            user=machine.user,
            share=share,
            cache_bytes=self.settings.cache_gib << 30,
            needed=lambda: needed_files(self.store).kernels if self.has_store else frozenset(),
        )

    def testbed(self, name: str, stop: Stop | None = None) -> Testbed:
        """Return one testbed of the lab, ready to boot kernels in its turn on its host."""
        from bisector.adapters.machine.host_turns import TestbedOnHost

        spec = self.lab.testbed(name)
        return TestbedOnHost(self._testbed_alone(spec, stop), self.host_lock(spec, stop))

    def _testbed_alone(self, spec: TestbedSpec, stop: Stop | None) -> Testbed:
        match spec.variables.kind:
            case "libvirt":
                from bisector.adapters.guest.libvirt_testbed import LibvirtTestbed

                cache, state = self.settings.cache_dir, self.settings.state_dir
                return LibvirtTestbed(spec, self.ansible(stop), cache, state, self.exchange)
            case "ssh":
                from bisector.adapters.machine import machine_mark, ssh_testbed

                us = machine_mark.machine_user(self.settings.database, self.settings.lock_dir, self.user())
                return ssh_testbed.SSHTestbed(spec, self.ansible(stop), us, self.settings.state_dir)
            case "local":
                from bisector.adapters.machine.local_testbed import LocalTestbed

                own = spec.variables
                return LocalTestbed(spec.name, own.block_device, own.environment.settings())

    def measuring_builders(self, testbeds: Iterable[str]) -> frozenset[int]:
        """Return the builders, by number, that share a machine with one of these testbeds."""
        from bisector.adapters.machine.physical_hosts import host_names

        lab = self.lab
        measuring = {host for name in testbeds for host in host_names(lab, lab.testbed(name))}
        return frozenset(n for n, spec in enumerate(lab.builders) if measuring & {*host_names(lab, spec)})

    @contextmanager
    def claim_testbed(
        self, name: str, progress: Progress, stop: Stop | None = None
    ) -> Iterator[Callable[[], bool]]:
        """Hold a testbed against all other perfbisects of this machine; gives whether one waits for it."""
        from bisector.adapters.machine.physical_hosts import claim_names

        lock = self.machine_lock(claim_names(self.lab.testbed(name)), f"the testbed '{name}'", stop)
        with lock.exclusive(progress):
            yield lock.is_wanted

    @contextmanager
    def this_machine(self) -> Iterator[Testbed]:
        """Give this machine as a testbed in turn on itself, held against all other perfbisects."""
        from bisector.adapters.machine.host_turns import TestbedOnHost
        from bisector.adapters.machine.local_testbed import LocalTestbed
        from bisector.adapters.machine.physical_hosts import HERE

        host = self.machine_lock((f"host-{HERE}",), "its turn on this machine", None)
        with self.machine_lock((f"testbed-{HERE}",), "this machine as a testbed", None).exclusive(self.note):
            yield TestbedOnHost(LocalTestbed(), host)

    def host_lock(self, spec: TestbedSpec | BuilderSpec, stop: Stop | None) -> MachineLock:
        """Return the lock of the physical machine that a testbed or builder of the lab runs on."""
        from bisector.adapters.machine.physical_hosts import host_names as names

        return self.machine_lock(names(self.lab, spec), f"its turn on the machine of '{spec.name}'", stop)

    def user(self) -> str:
        """Return this process in words, for others that wait for what it holds."""
        work = f"{self.doing}, state folder {self.settings.state_dir}"
        return f"process {os.getpid()} on {socket.gethostname()} ({work})"

    def machine_lock(self, names: tuple[str, ...], what: str, stop: Stop | None) -> MachineLock:
        """Return a lock that all perfbisects here know by these names. what: is waited for."""
        from bisector.adapters.system.machine_locks import MachineLock

        return MachineLock(self.settings.lock_dir, names, what, self.user(), stop)

    def bisection_folder(self, identity: str) -> Path:
        """Return where a bisection keeps its raw output and reports."""
        return self.settings.state_dir / "bisections" / identity
