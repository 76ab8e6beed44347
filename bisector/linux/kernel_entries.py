"""Where a kernel is entered, and what executes calls for others: known by the names of its functions.

Paths of calls begin there, on x86_64. Since 5.8 an entry in assembler is asm_X and X is a C function; before,
X (or X_interrupt) was the entry itself, and do_X or smp_X the C function. Of an arm64 kernel, whose calls are
not followed, only what is counted is known. Its faults and system calls share one entry: a fault is known by
the C function behind it.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Collection, Mapping


class Kind(enum.IntFlag):
    """What a function is; the plugin knows these numbers (files/counters/function_table.h)."""

    ENTRY = 1
    """Interrupts and faults begin at its first instruction."""
    STUBS = 2
    """A table of pieces that lead to an entry, one for each interrupt."""
    SYSCALL = 4
    THUNK = 8
    """Executes an indirect call or jump for its caller (retpolines)."""
    SWITCH = 16
    """Is called when the stack has just become another task's, until 4.8; since then it is jumped to."""


FAULTS, INTERRUPTS, SWITCHES = "page-faults", "interrupts", "context-switches"
"""Metrics whose number is how often entries are entered."""

_NEW = "asm_exc_page_fault"
"""A kernel with this function names its entries as 5.8 does."""

_STUBS = re.compile(
    r"irq_entries_start|spurious_entries_start|early_idt_handler_array|IRQ0x[0-9a-f]+_interrupt"
)
_SYSCALLS = re.compile(
    r"entry_SYSCALL_64|system_call|entry_SYSCALL_compat|entry_SYSENTER_compat|ia32_(cstar|sysenter)_target"
)
_THUNKS = re.compile(r"__x86_(indirect|return)_\w+|retbleed_\w+|srso_\w+")
_NEW_INTERRUPTS = re.compile(r"asm_(common_interrupt|spurious_interrupt|sysvec_\w+)")
_NEW_FAULTS = re.compile(r"asm_exc_\w+|entry_INT80_compat|asm_int80_emulation")
_OLD_INTERRUPTS = re.compile(
    r"common_interrupt|(apic_timer|reschedule|call_function(_single)?|irq_work|irq_move_cleanup|error|spurious|"
    r"thermal|threshold|invalidate)_interrupt|invalidate_interrupt\d+|uv_bau_message_intr1|x86_platform_ipi|"
    r"generic_interrupt|reboot_interrupt|perf_pending_interrupt|hyperv_callback_vector|kvm_posted_intr_\w+"
)
_ARM_INTERRUPTS = re.compile(r"el[01][th]_(64|32)_(irq|fiq)|el[01]_(irq|fiq)(_compat)?")
"""Since 5.13, and before."""
_OLD_FAULTS = re.compile(
    r"page_fault|async_page_fault|general_protection|divide_error|overflow|bounds|invalid_op|device_not_available|"
    r"double_fault|coprocessor_segment_overrun|invalid_TSS|segment_not_present|stack_segment|alignment_check|"
    r"coprocessor_error|simd_coprocessor_error|machine_check|debug|int3|nmi|ia32_syscall|entry_INT80_compat"
)


def kinds(names: Collection[str]) -> Mapping[str, Kind]:
    """Return what is known of a kernel's functions, by name; those of which nothing is are left out."""
    new = _NEW in names
    entries = (_NEW_INTERRUPTS, _NEW_FAULTS) if new else (_OLD_INTERRUPTS, _OLD_FAULTS)
    found = {name: _kind(name, entries) for name in names}
    return {name: kind for name, kind in found.items() if kind}


def _kind(name: str, entries: Collection[re.Pattern[str]]) -> Kind:
    if name == "__switch_to":
        return Kind.SWITCH
    if _STUBS.fullmatch(name):
        return Kind.STUBS
    if _SYSCALLS.fullmatch(name):
        return Kind.SYSCALL
    if _THUNKS.fullmatch(name):
        return Kind.THUNK
    return Kind.ENTRY if any(pattern.fullmatch(name) for pattern in entries) else Kind(0)


def counted_by(names: Collection[str]) -> Mapping[str, frozenset[str]]:
    """Return which functions are entered once for each page fault, interrupt and switch of the task.

    A metric of which the kernel has no such function is left out.
    """
    new = _NEW in names
    faults = {_NEW} if new else {"page_fault", "async_page_fault", "do_mem_abort"} & set(names)
    patterns = (_NEW_INTERRUPTS,) if new else (_OLD_INTERRUPTS, _ARM_INTERRUPTS)
    interrupts = {name for name in names if any(pattern.fullmatch(name) for pattern in patterns)}
    found = {FAULTS: faults, INTERRUPTS: interrupts, SWITCHES: {"__switch_to"} & set(names)}
    return {metric: frozenset(functions) for metric, functions in found.items() if functions}
