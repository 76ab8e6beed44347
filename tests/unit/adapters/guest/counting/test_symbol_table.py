"""Functions by address: of several names of one place the function's, by its name in the source."""

from __future__ import annotations

from bisector.adapters.guest.counting.symbol_table import ELSEWHERE, SymbolTable

TABLE = SymbolTable(
    "ffffffff81000000 T __irqentry_text_start\n"
    "ffffffff81000000 T asm_exc_page_fault\n"
    "ffffffff81000000 T startup_64\n"
    "ffffffff81001000 t helper.isra.0\n"
    "ffffffff81001000 t aliased_helper\n"
    "ffffffff81002000 t helper.cold\n"
    "0000000000001000 A percpu\n"
    "ffffffff81003000 T _etext\n"
    "ffffffff81004000 t last\n"
)


def test_a_place_has_one_name() -> None:
    assert TABLE.function(0xFFFFFFFF81000010) == "asm_exc_page_fault"
    assert TABLE.function(0xFFFFFFFF81001000) == "aliased_helper"
    assert TABLE.function(0xFFFFFFFF81002FFF) == "helper"
    for outside in (0x1000, 0xFFFFFFFF81003000, 0xFFFFFFFF81004000):
        assert TABLE.function(outside) == ELSEWHERE


def test_all_places_come_in_order() -> None:
    assert [name for _, name in TABLE] == [
        "asm_exc_page_fault",
        "aliased_helper",
        "helper",
        ELSEWHERE,
        ELSEWHERE,
    ]
    assert [hex(address)[-4:] for address, _ in TABLE] == ["0000", "1000", "2000", "3000", "4000"]
