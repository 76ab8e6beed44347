/*
 * A program that may lie anywhere, whose functions execute what can be counted by hand: FIRST, SECOND and THIRD calls of
 * functions of nine instructions, each a block of 33 bytes. TAG makes their code that of one program.
 */
	.text
	.globl ENTRY, first, second, third
	.type ENTRY, @function
ENTRY:
	.byte 0x0f, 0x1f, 0x80, 0x50, 0x42, 3, 0
	.byte 0x0f, 0x1f, 0x80, 0x50, 0x42, 5, 0
	.byte 0x0f, 0x1f, 0x80, 0x50, 0x42, 1, 0
	jmp 4f
4:	mov $FIRST, %ebx
1:	call first
	dec %ebx
	jnz 1b
	mov $SECOND, %ebx
2:	call second
	dec %ebx
	jnz 2b
	mov $THIRD, %ebx
3:	call third
	dec %ebx
	jnz 3b
	jmp 5f
5:	.byte 0x0f, 0x1f, 0x80, 0x50, 0x42, 2, 0
	mov $60, %eax
	xor %edi, %edi
	syscall
	.size ENTRY, . - ENTRY

	.macro nine name, number
	.balign 16
	.type \name, @function
\name:
	.rept 8
	lea \number + TAG(%rax), %rax
	.endr
	ret
	.size \name, . - \name
	.endm

	nine first, 1
	nine second, 2
	nine third, 3
	.section .note.GNU-stack, "", @progbits
