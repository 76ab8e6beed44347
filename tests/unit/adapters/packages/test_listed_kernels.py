"""Kernels of a list as a history; `tests/contract/test_source_contract.py` has what every source promises."""

from __future__ import annotations

import pytest

from bisector.adapters.packages.listed_kernels import ListedKernels
from bisector.errors import RequestError
from bisector.model.commit_graph import listed_id, short_name
from bisector.model.goal import TERMS
from bisector.schemas.kernel.listed_kernel import ListedKernel


def _kernel(version: str) -> ListedKernel:
    return ListedKernel(
        id=listed_id(version, version.encode().hex() * 8),
        files=(f"/debs/linux-image_{version}.deb",),
        sums=(version,),
        package=f"linux-image-{version}",
        version=version,
        release=f"{version}-amd64",
        built="#1",
    )


VERSIONS = ("6.1.9-1", "6.1.10-1", "6.1.10-10", "6.2-1")
LIST = ListedKernels([_kernel(version) for version in VERSIONS])


@pytest.mark.parametrize(
    "name",
    [
        *("6.1.10-1", "6.1.10-1-amd64", "linux-image-6.1.10-1", "linux-image_6.1.10-1.deb", "6.1.10-1@36"),
        *(f"{place}linux-image_6.1.10-1.deb" for place in ("/debs/", "debs/", "./", "../debs/")),
    ],
)
def test_a_kernel_has_several_names(name: str) -> None:
    assert short_name(LIST.resolve(name)) == "6.1.10-1"


def test_a_name_that_is_no_kernel_s_is_refused_with_the_nearest() -> None:
    with pytest.raises(RequestError, match=r"'6\.1\.11-1' names no kernel of the list; did you mean"):
        LIST.resolve("6.1.11-1")
    for path in ("rpms/linux-image_6.1.10-1.deb", "/linux-image_6.1.10-1.deb", "..", "."):
        with pytest.raises(RequestError, match="names no kernel"):
            LIST.resolve(path)
    with pytest.raises(RequestError, match="several kernels"):
        LIST.resolve("6.1")


def test_ends_in_the_wrong_order_have_a_cure_for_each_mistake() -> None:
    with pytest.raises(RequestError, match=r"6\.1\.9-1, the bad end, is listed before 6\.2-1") as error:
        LIST.graph("6.2-1", "6.1.9-1")
    assert "--find fix" in error.value.cure
    with pytest.raises(RequestError, match=r"6\.1\.9-1, the good end") as error:
        LIST.graph("6.2-1", "6.1.9-1", terms=TERMS["fix"])
    assert "without --find fix" in error.value.cure


def test_a_range_of_the_list_is_skipped() -> None:
    graph = LIST.graph("6.1.9-1", "6.2-1", skip=["6.1.9-1..6.1.10-10"])
    assert [*graph.untestable] == [1, 2]
    with pytest.raises(RequestError, match=r"is empty: '6\.1\.10-10' is not before"):
        LIST.graph("6.1.9-1", "6.2-1", skip=["6.1.10-10..6.1.9-1"])
    with pytest.raises(RequestError, match="--skip covers the bad end"):
        LIST.graph("6.1.9-1", "6.2-1", skip=["6.2-1"])


def test_what_only_a_git_history_has_is_refused() -> None:
    with pytest.raises(RequestError, match="--first-parent"):
        LIST.graph("6.1.9-1", "6.2-1", first_parent=True)
