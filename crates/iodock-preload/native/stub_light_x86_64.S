/* The stub that counts calls (--light) and does not record them. It notes nothing before a call, and reads
 * the clock only for calls that are timed. See light_calls.c. stub_x86_64.S explains the parts that both
 * stubs share. */

#include "hot.h"

	.text
#include "frame_x86_64.h"

	.globl	iodock_light
	.hidden	iodock_light
	.type	iodock_light, @function
	.p2align 6
iodock_light:
	ENTER
	cmpl	$0, iodock_stopped(%rip)
	jne	.Lleft_alone
	cmpl	$LAST_DATA_NUMBER, %eax
	ja	.Ltimed
	movl	$DATA_NUMBERS, %edx
	btl	%eax, %edx
	jnc	.Ltimed
	movq	iodock_own@gottpoff(%rip), %r11
	movq	%fs:(%r11), %r11
	testq	%r11, %r11
	jz	.Ltimed
	cmpl	$0, STATE_UNTIMED(%r11)
	je	.Ltimed
	decl	STATE_UNTIMED(%r11)
	xorl	%eax, %eax
	jmp	.Lbegun
.Ltimed:
	rdtsc
	shlq	$32, %rdx
	orq	%rdx, %rax
.Lbegun:
	pushq	%rax
	.cfi_adjust_cfa_offset 8
	movq	32(%rsp), %rdx
	movq	8(%rsp), %rax
	syscall
	pushq	%rax
	.cfi_adjust_cfa_offset 8
	movq	%rsp, %rdi
	call	iodock_count
	POP	%rax
	leaq	16(%rsp), %rsp
	.cfi_adjust_cfa_offset -16
	.cfi_remember_state
	LEAVE
	.cfi_restore_state
	.cfi_def_cfa_offset 200
	/* Recording has stopped: the clock may be forbidden. */
.Lleft_alone:
	movq	(%rsp), %rax
	syscall
	leaq	8(%rsp), %rsp
	.cfi_adjust_cfa_offset -8
	LEAVE
	.cfi_endproc
	.size	iodock_light, .-iodock_light

	.section .note.GNU-stack, "", @progbits
