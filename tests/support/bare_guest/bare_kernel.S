/*
 * A kernel of a page for the plugin's paths of calls: x86_64 in long mode, its code in the upper half, where a kernel's is.
 * One run, number 5. `spend NAME N` is a function of N instructions and its return, so that all counts are known.
 * One section, loaded as it is at 1 MiB (multiboot's address fields), which is also at HIGH + 1 MiB.
 */
#define HIGH 0xffffffff80000000
#define MARK(number) .byte 0x0f, 0x1f, 0x80, 0x50, 0x42, number, 0

	.macro gate at
	mov %ax, \at(%rdi)
	movl $0x8e000008, \at + 2(%rdi)
	shr $16, %rax
	mov %ax, \at + 6(%rdi)
	shr $16, %rax
	mov %eax, \at + 8(%rdi)
	.endm

	.text
	.code32
	.align 4
header:	.long 0x1badb002, 0x10000, -(0x1badb002 + 0x10000)
	.long header - HIGH, 0x100000, 0, 0, boot - HIGH
boot:	mov $(tables - HIGH), %edi
	mov %edi, %cr3
	lea 0x1003(%edi), %eax		/* the upper tables: their first and last entries lead to the same one page */
	mov %eax, (%edi)
	mov %eax, 0xff8(%edi)
	lea 0x2003(%edi), %eax
	mov %eax, 0x1000(%edi)
	mov %eax, 0x1ff0(%edi)
	movl $0x83, 0x2000(%edi)	/* of 2 MiB */
	mov %cr4, %eax
	or $0x20, %eax
	mov %eax, %cr4
	mov $0xc0000080, %ecx
	rdmsr
	or $0x100, %eax
	wrmsr
	mov %cr0, %eax
	or $0x80000001, %eax
	mov %eax, %cr0
	lgdt descriptor - HIGH
	ljmp $8, $(long_mode - HIGH)
	.align 8
gdt:	.quad 0, 0x00209a0000000000
descriptor:
	.word 15
	.quad gdt - HIGH

	.code64
long_mode:
	movabs $high, %rax
	jmp *%rax
high:	xor %eax, %eax			/* iretq checks the stack segment that an interrupt has saved */
	mov %eax, %ss
	lea table(%rip), %rdi		/* the gates of interrupts 0x20 and 0x21 */
	lea asm_sysvec_apic_timer_interrupt(%rip), %rax
	gate 0x200
	lea asm_exc_page_fault(%rip), %rax
	gate 0x210
	lidt interrupts(%rip)
	MARK(3)
	MARK(5)
	MARK(4)
	MARK(5)
	MARK(1)
	jmp start
start:	mov $stack_end, %rsp
	call work
	MARK(2)
	jmp end
end:	mov $0x501, %dx
	out %eax, %dx
	hlt

	.macro spend name, count
\name:	.rept \count
	nop
	.endr
	ret
	.endm
	spend leaf 9
pointed: fxsave area(%rip)		/* QEMU 7.2 shows what it stores to the call that led here */
	.rept 18
	nop
	.endr
	ret
	spend served 29
	spend other_leaf 39

work:	.rept 5
	call leaf
	.endr
	lea pointed(%rip), %rax
	call *%rax
	call __x86_indirect_thunk_rax
	call tail
	mov $(other_stack_end - 8), %rbx
	lea other_task(%rip), %rax
	mov %rax, (%rbx)
	call __switch_to_asm
	call leaf
	call outer
	call interrupted
	call low
	call leaver
	call looper
	ret
__x86_indirect_thunk_rax:
	jmp *%rax
tail:	nop
	jmp leaf
__switch_to_asm:			/* as Linux does: the return goes to whatever lies on the other stack */
	xchg %rsp, %rbx
	jmp __switch_to
__switch_to:
	nop
	ret
other_task:
	call other_leaf
	call __switch_to_asm
outer:	mov %rsp, %rbp
	call middle
	hlt
middle:	call inner
	hlt
inner:	mov %rbp, %rsp			/* nobody returns to middle, nor to outer */
	jmp landing
landing: call leaf
	ret
leaver:	mov %rsp, %rbp
	call thrower
	hlt
thrower: mov %rbp, %rsp			/* returns for leaver */
	ret
looper:	mov $8, %ecx
1:	dec %ecx
	jnz 1b				/* what no predictor knows at first */
	ret
interrupted:
	call leaf
	int $0x20
	nop
	ret
low:	lea -9000(%rsp), %rsp		/* what the plugin takes for another stack */
	call leaf
	lea 9000(%rsp), %rsp
	ret
asm_sysvec_apic_timer_interrupt:
	call served
	int $0x21			/* an interrupt of the interrupt, that is a tree of its own, too */
	iretq
asm_exc_page_fault:
	call served
	iretq
behind:
	.align 8
interrupts:
	.word 4095
	.quad table
	.align 16
area:	.fill 512
	.align 4096
tables:	.fill 3 * 4096
table:	.fill 4096
	.align 8192
	.fill 2 * 8192
stack_end:
	.fill 8192
other_stack_end:
