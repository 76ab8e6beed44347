"""Writes the reports of a bisection beside its data."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING

from bisector.adapters.system.files import write_atomically
from bisector.app.artefacts import shared_files
from bisector.app.load_report import HOST, NAMES, keep_names, load_material
from bisector.app.wiring import Wiring
from bisector.errors import PerfbisectError

if TYPE_CHECKING:
    from bisector.report.report_model import Material


def write_reports(wiring: Wiring, identity: str, note: Callable[[str], object]) -> Material | None:
    """Write both forms of the report beside the bisection's data, however far it got; return what is in them.

    Nothing that goes wrong here, such as a full disk, may change how the search ended.
    """
    from bisector.report import json_report, text

    try:
        material = load_material(wiring, identity, so_far=True)
        folder = wiring.bisection_folder(identity)
        keep_names(folder, material)
        write_atomically(folder / "report.txt", text.render(material))
        write_atomically(folder / "report.json", json.dumps(json_report.render(material), indent=2) + "\n")
        if material.conclusion is not None:
            shared_files.keep_facts(wiring, identity, HOST, NAMES)
    except (OSError, PerfbisectError) as error:
        note(f"the report could not be written: {error}; 'perfbisect report {identity}' prints it")
        return None
    return material
