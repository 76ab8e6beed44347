"""What of a boot's counts is kept with its records: enough that no function jumps from 0."""

from __future__ import annotations

from bisector.adapters.guest.counting.function_counts import values
from bisector.schemas.counted_functions import CountedFunction, CountedFunctionsFile

CYCLES = "modelled cycles"


def counted(
    misses: dict[str, float], paths: tuple[tuple[int, str, float, float], ...] = ()
) -> CountedFunctionsFile:
    functions = tuple(
        CountedFunction(name=name, instructions=1.0, spread=0.0, misses=(0.0,) * 8 + (missed,))
        for name, missed in misses.items()
    )
    return CountedFunctionsFile(runs=1, user=0.0, functions=functions, paths=paths)


def kept(found: CountedFunctionsFile, most: int = 10_000) -> dict[str, float]:
    return {name: value for name, value, unit in values(found, most) if unit == CYCLES}


def test_a_function_just_below_and_above_a_thousandth_is_kept_on_both_sides() -> None:
    before = kept(counted({"large": 999_050.0, "small": 950.0}))
    after = kept(counted({"large": 998_950.0, "small": 1050.0}))
    assert (before["small"], after["small"]) == (950.0, 1050.0)
    assert "[other functions]" not in before.keys() | after.keys()


def test_what_has_less_than_a_hundred_thousandth_is_in_the_sum_of_the_others() -> None:
    found = kept(counted({"large": 999_982.0, "tiny": 9.0, "small": 11.0, "none": 0.0}))
    assert found == {"large": 999_982.0, "small": 11.0, "[other functions]": 9.0}


def test_what_a_function_executes_for_a_rare_caller_is_kept() -> None:
    paths = ((0, "read", 999_950.0, 1.0), (1, "copy", 41.0, 1.0), (0, "copy", 9.0, 1.0))
    names = [name for name, _, _ in values(counted({}, paths), 10_000)]
    assert "copy < read" in names and "copy < [an entry of the kernel]" not in names


def test_where_not_all_of_it_fits_less_is_kept_by_name_and_sums_stay_right() -> None:
    middle = {f"middle{n}": 500.0 for n in range(9)}
    misses = {"large": 1e6, **middle, **{f"small{n}": 50.0 for n in range(30)}}
    found = counted(misses)
    assert len(kept(found)) == len(misses)
    few = kept(found, len(misses) + 20)  # instructions come first, and all of them
    assert few.keys() == {"large", "[other functions]", *middle}
    assert sum(few.values()) == sum(misses.values())
    assert len(values(found, 3)) == 3
