/*
 * A program whose functions execute what can be counted by hand: LEAVES calls of leaf, one of leaf as it rewrites it, and
 * one of OWN with TURNS turns.
 */
	.text
	.globl _start, leaf, OWN
	.type leaf, @function
	.type OWN, @function
_start:
	.byte 0x0f, 0x1f, 0x80, 0x50, 0x42, 3, 0
	.byte 0x0f, 0x1f, 0x80, 0x50, 0x42, 5, 0
	.byte 0x0f, 0x1f, 0x80, 0x50, 0x42, 1, 0
	mov $LEAVES, %ebx
1:	call leaf
	dec %ebx
	jnz 1b
	movb $0xc8, leaf + 1 /* inc becomes dec: as long, and of as many instructions */
	movb $0xc8, leaf + 3
	call leaf
	call OWN
	.byte 0x0f, 0x1f, 0x80, 0x50, 0x42, 2, 0
	mov $60, %eax
	xor %edi, %edi
	syscall
leaf:
	inc %eax
	inc %eax
	ret
	.size leaf, . - leaf
OWN:
	mov $TURNS, %ecx
2:	dec %ecx
	jnz 2b
	ret
	.size OWN, . - OWN
