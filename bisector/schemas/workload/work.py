"""The work of a run, in units: so that reports can say '+1,560 instructions a round trip'."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from bisector.schemas.loading import Spec, matching
from bisector.schemas.workload.parameter_matrix import points, single_values

_NUMBER = r"[1-9][0-9]{0,14}"
_FACTOR = rf"(?:{_NUMBER}|\{{[a-z][a-z0-9_]{{0,99}}\}})"


def _as_text(value: Any) -> Any:  # noqa: ANN401 - whatever the file holds
    return str(value) if type(value) is int else value


class Work(Spec):
    """The key `work` of a manifest."""

    described_in = "workloads/README.md"

    unit: Annotated[str, matching(r"[A-Za-z][A-Za-z0-9 /_-]{0,39}", "a word or a few: 'round trip'")] = Field(
        description="what it does again and again, in the singular"
    )
    count: Annotated[
        str,
        BeforeValidator(_as_text),
        matching(
            rf"{_FACTOR}(?: [*+] {_FACTOR}){{0,9}}", "numbers above 0 and '{parameter}', with ' * ' and ' + '"
        ),
    ] = Field(description="how often the command does it: 20000, '{loops}', '{clients} * {transactions}'")

    def in_a_run(self, parameters: Mapping[str, Sequence[str]]) -> tuple[str, int] | None:
        """Return the unit, and how many a run does in all combinations of parameters together.

        None where that is no number, or only the testbed knows it: combinations by the number of its CPUs.
        """
        total, fixed = 0, single_values(parameters)
        for point in points(parameters):
            for term in self.count.split(" + "):
                factors = point.command(term.split(" * "), fixed)
                if point.limits or not all(re.fullmatch(_NUMBER, factor) for factor in factors):
                    return None
                total += math.prod(map(int, factors))
        return self.unit, total
