"""Where kernels old and new are entered is known by names."""

from __future__ import annotations

import pytest

from bisector.linux.kernel_entries import Kind, counted_by, kinds

NEW = (
    *("asm_exc_page_fault", "asm_exc_int3", "asm_common_interrupt", "asm_sysvec_apic_timer_interrupt"),
    *("common_interrupt", "sysvec_apic_timer_interrupt", "exc_page_fault", "asm_load_gs_index"),
    *("irq_entries_start", "entry_SYSCALL_64", "__switch_to", "__x86_indirect_thunk_rax", "schedule"),
)
OLD = (
    *("page_fault", "int3", "common_interrupt", "apic_timer_interrupt", "do_page_fault", "system_call"),
    *("smp_apic_timer_interrupt", "IRQ0x20_interrupt", "__switch_to", "schedule"),
)
ARM = (
    *(
        "el1h_64_irq",
        "el0t_64_irq",
        "el1h_64_irq_handler",
        "el1h_64_fiq",
        "el0t_64_sync",
        "el0_da",
        "do_page_fault",
    ),
    *("do_mem_abort", "__switch_to", "cpu_switch_to", "schedule"),
)
OLD_ARM = ("el1_irq", "el0_irq", "el0_sync", "el1_sync", "do_mem_abort", "__switch_to", "gic_handle_irq")


@pytest.mark.parametrize(
    ("names", "entries", "syscall"),
    [
        (NEW, {"asm_exc_page_fault", "asm_exc_int3", *NEW[2:4]}, "entry_SYSCALL_64"),
        (OLD, {"page_fault", "int3", "common_interrupt", "apic_timer_interrupt"}, "system_call"),
    ],
)
def test_entries_are_those_in_assembler(names: tuple[str, ...], entries: set[str], syscall: str) -> None:
    found = kinds(names)
    assert {name for name, kind in found.items() if kind == Kind.ENTRY} == entries
    assert {name for name, kind in found.items() if kind == Kind.SYSCALL} == {syscall}
    assert found["__switch_to"] == Kind.SWITCH
    assert {name for name, kind in found.items() if kind == Kind.STUBS} == {
        name for name in names if name in ("irq_entries_start", "IRQ0x20_interrupt")
    }
    assert "schedule" not in found


def test_what_happens_is_counted_by_where_it_begins() -> None:
    assert counted_by(NEW) == {
        "page-faults": {"asm_exc_page_fault"},
        "interrupts": {"asm_common_interrupt", "asm_sysvec_apic_timer_interrupt"},
        "context-switches": {"__switch_to"},
    }
    assert counted_by(OLD) == {
        "page-faults": {"page_fault"},
        "interrupts": {"common_interrupt", "apic_timer_interrupt"},
        "context-switches": {"__switch_to"},
    }
    assert counted_by(ARM) == {
        "page-faults": {"do_mem_abort"},
        "interrupts": {"el1h_64_irq", "el0t_64_irq", "el1h_64_fiq"},
        "context-switches": {"__switch_to"},
    }
    assert counted_by(OLD_ARM)["interrupts"] == {"el1_irq", "el0_irq"}
    assert counted_by(["handle_exception"]) == {}
