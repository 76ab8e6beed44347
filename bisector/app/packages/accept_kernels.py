"""Accept a request, whatever it searches: commits of a repository, or kernels that a list names."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import bisector
from bisector.app.accept import accept, goal_of, modelled_processor, workload_of
from bisector.app.testbeds.testbed_choice import choose_testbeds
from bisector.errors import RequestError
from bisector.model.goal import TERMS
from bisector.schemas import serialization
from bisector.schemas.kernel.recipe import load_recipe
from bisector.schemas.request import Accepted, Request, option_name
from bisector.schemas.workload.compatibility import check_recipe
from bisector.schemas.workload.sample_keys import sample_keys

if TYPE_CHECKING:
    from bisector.app.wiring import Wiring
    from bisector.model.commit_graph import CommitGraph

RECIPE = "x86_64-package"
"""In place of a recipe that builds: it says what is known of listed kernels, such as modules for guests."""

_OF_COMMITS = ("first_parent", "paths", "apply", "with_fix", "trust_repo", "priors")
"""Options that mean nothing where kernels are neither built nor commits of a history."""


def accept_request(wiring: Wiring, request: Request) -> tuple[Accepted, CommitGraph]:
    """Resolve everything in a request, or refuse it: RequestError, and nothing was changed."""
    return accept_kernels(wiring, request) if request.kernels else accept(wiring, request)


def accept_kernels(wiring: Wiring, request: Request) -> tuple[Accepted, CommitGraph]:
    """Do so for the kernels of a list: each is looked into, none is unpacked. Raises RequestError."""
    from bisector.adapters.agent.workload_sources import source_checksum
    from bisector.adapters.packages.kernel_list import read_kernels
    from bisector.adapters.packages.listed_kernels import ListedKernels

    for name in _OF_COMMITS:
        if getattr(request, name):
            option = "a path after --" if name == "paths" else option_name(name)
            raise RequestError(
                f"{option} has no meaning with --kernels: nothing is built from a history",
                cure="leave it out",
            )
    workload = workload_of(request)
    workload.metric(request.metric)
    check_recipe(workload, load_recipe(RECIPE))
    kernels = read_kernels(Path(request.kernels))
    source = ListedKernels(kernels)
    good, bad = source.resolve(request.good), source.resolve(request.bad)
    ends = request.oldest_first(good, bad)
    graph = source.graph(*ends, skip=request.skip, terms=TERMS[request.find])
    choice = choose_testbeds(wiring, request, workload)
    inside = {*graph.shas}
    accepted = Accepted(
        request=request.model_copy(update={"recipe": RECIPE, "repo": request.kernels}),
        good=good,
        bad=bad,
        goal=serialization.goal_to_json(goal_of(request, workload, choice.clock)),
        testbeds=choice.testbeds,
        clock=choice.clock,
        workload=workload.name,
        workload_sum=source_checksum(workload),
        sample_keys=sample_keys(workload.manifest),
        testbeds_chosen=not request.testbeds,
        version=bisector.__version__,
        kernels=tuple(kernel for kernel in kernels if kernel.id in inside),
        cpu=modelled_processor(workload),
    )
    return accepted, graph
