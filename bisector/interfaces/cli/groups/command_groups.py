"""The groups of commands, such as `perfbisect testbed list`; each imports its modules when it is added."""

from __future__ import annotations

from collections.abc import Callable

import typer

from bisector.interfaces.cli.arguments.argument_rules import StrictCommand, StrictGroup


def add_commands(app: typer.Typer, *commands: Callable[..., None]) -> None:
    """Add commands to an application or a group, named as their functions."""
    for command in commands:
        app.command(command.__name__.rstrip("_"), cls=StrictCommand)(command)


def _add_workload(app: typer.Typer) -> None:
    from bisector.interfaces.cli.groups import workload, workload_run

    group = typer.Typer(cls=StrictGroup, help="What can be measured.", rich_markup_mode=None)
    add_commands(group, workload.list_, workload.show, workload_run.run, workload.new, workload.check)
    app.add_typer(group, name="workload")


def _add_kernel(app: typer.Typer) -> None:
    from bisector.interfaces.cli.groups import kernel

    group = typer.Typer(
        cls=StrictGroup, help="Kernels: build one, explain how, manage the cache.", rich_markup_mode=None
    )
    add_commands(group, kernel.build, kernel.explain, kernel.check, kernel.list_, kernel.gc)
    app.add_typer(group, name="kernel")


def _add_lab(app: typer.Typer) -> None:
    from bisector.interfaces.cli.groups import lab, lab_add

    group = typer.Typer(cls=StrictGroup, help="The machines that build and measure.", rich_markup_mode=None)
    add_commands(group, lab.list_, lab.check, lab.power, lab_add.add)
    app.add_typer(group, name="lab")


def _add_db(app: typer.Typer) -> None:
    from bisector.interfaces.cli.groups import db

    group = typer.Typer(cls=StrictGroup, help="The database of bisections.", rich_markup_mode=None)
    add_commands(group, db.upgrade, db.check, db.move, db.prune)
    app.add_typer(group, name="db")


def _add_testbed(app: typer.Typer) -> None:
    from bisector.interfaces.cli.groups import testbed

    group = typer.Typer(
        cls=StrictGroup, help="What each testbed may be used for, and by whom.", rich_markup_mode=None
    )
    add_commands(group, testbed.list_, testbed.reserve, testbed.release, testbed.drain, testbed.retire)
    add_commands(group, testbed.health)
    app.add_typer(group, name="testbed")


def _add_series(app: typer.Typer) -> None:
    from bisector.interfaces.cli.groups import series_commands as series
    from bisector.interfaces.cli.groups import series_views

    group = typer.Typer(
        cls=StrictGroup, help="Branches that are measured night by night.", rich_markup_mode=None
    )
    add_commands(group, series.add, series_views.list_, series_views.show, series.run, series.backfill)
    add_commands(group, series.pause, series.resume, series.remove)
    app.add_typer(group, name="series")


def _add_alert(app: typer.Typer) -> None:
    from bisector.interfaces.cli.groups import alert

    group = typer.Typer(cls=StrictGroup, help="Nightly series whose level moved.", rich_markup_mode=None)
    add_commands(group, alert.list_, alert.show, alert.set_)
    app.add_typer(group, name="alert")


def _add_token(app: typer.Typer) -> None:
    from bisector.interfaces.cli.groups import token

    group = typer.Typer(cls=StrictGroup, help="Who may use 'perfbisect web'.", rich_markup_mode=None)
    add_commands(group, token.add, token.list_, token.revoke)
    app.add_typer(group, name="token")


def _add_mail(app: typer.Typer) -> None:
    from bisector.interfaces.cli.groups import mail

    group = typer.Typer(cls=StrictGroup, help="Messages that leave the lab.", rich_markup_mode=None)
    add_commands(group, mail.list_, mail.preview, mail.approve, mail.stop)
    app.add_typer(group, name="mail")


def _add_settings(app: typer.Typer) -> None:
    from bisector.interfaces.cli.groups import show_settings

    group = typer.Typer(cls=StrictGroup, help="What is set, and where.", rich_markup_mode=None)
    add_commands(group, show_settings.show, show_settings.check)
    app.add_typer(group, name="settings")


GROUPS: tuple[tuple[str, Callable[[typer.Typer], None]], ...] = (
    ("workload", _add_workload),
    ("kernel", _add_kernel),
    ("lab", _add_lab),
    ("testbed", _add_testbed),
    ("series", _add_series),
    ("alert", _add_alert),
    ("db", _add_db),
    ("token", _add_token),
    ("mail", _add_mail),
    ("settings", _add_settings),
)
"""Names of groups, and the function that adds each, in the order of `--help`."""
