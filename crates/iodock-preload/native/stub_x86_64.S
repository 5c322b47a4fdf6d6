/* Where the patched sites go. A site's trampoline puts its own return address into %rcx and the address
 * behind the original `syscall` into %r11 (the kernel destroys both anyway), and jumps here. Nothing else
 * may change but %rax. The 128 bytes below %rsp may be the function's (red zone).
 *
 * The call frame information makes this look as if the site had called it, so that unwinding out of a
 * signal handler (thread cancellation, C++ exceptions) finds the way into libc and on. */

	.text

/* struct frame: see record.c */
	.macro ENTER
	.cfi_startproc
	.cfi_def_cfa %rsp, 0
	.cfi_register %rip, %r11
	leaq	-128(%rsp), %rsp
	.cfi_def_cfa_offset 128
	pushq	%r11
	.cfi_def_cfa_offset 136
	.cfi_offset %rip, -136
	pushq	%rcx
	pushq	%r9
	pushq	%r8
	pushq	%r10
	pushq	%rdx
	pushq	%rsi
	pushq	%rdi
	pushq	%rax
	.cfi_adjust_cfa_offset 64
	.endm

	.macro LEAVE
	popq	%rdi
	popq	%rsi
	popq	%rdx
	popq	%r10
	popq	%r8
	popq	%r9
	popq	%rcx
	.cfi_adjust_cfa_offset -56
	leaq	136(%rsp), %rsp
	.cfi_adjust_cfa_offset -136
	jmpq	*%rcx
	.cfi_endproc
	.endm

/* The call is made here. */
	.globl	iodock_plain
	.hidden	iodock_plain
	.type	iodock_plain, @function
	.p2align 6
iodock_plain:
	ENTER
	cmpl	$0, iodock_stopped(%rip)
	jne	.Lleft_alone
	rdtsc
	shlq	$32, %rdx
	orq	%rdx, %rax
	pushq	%rax
	.cfi_adjust_cfa_offset 8
	movq	32(%rsp), %rdx
	movq	8(%rsp), %rax
	syscall
	pushq	%rax
	.cfi_adjust_cfa_offset 8
	rdtsc
	shlq	$32, %rdx
	orq	%rdx, %rax
	movq	%rax, %rsi
	movq	%rsp, %rdi
	call	iodock_record
	popq	%rax
	leaq	16(%rsp), %rsp
	.cfi_adjust_cfa_offset -24
	.cfi_remember_state
	popq	%rdi
	popq	%rsi
	popq	%rdx
	popq	%r10
	popq	%r8
	popq	%r9
	popq	%rcx
	leaq	136(%rsp), %rsp
	jmpq	*%rcx
	.cfi_restore_state
	.cfi_adjust_cfa_offset 8
	/* Recording has stopped in this process, and the clock may be forbidden (PR_SET_TSC, strict seccomp). */
.Lleft_alone:
	movq	(%rsp), %rax
	syscall
	leaq	8(%rsp), %rsp
	.cfi_adjust_cfa_offset -8
	LEAVE
	.size	iodock_plain, .-iodock_plain

/* The call is made by the trampoline, on the program's own stack, since it may come back on another
 * (clone), twice on the same (vfork), or not at all (exec, exit). Also where the number is known only when
 * it comes (syscall(3)): rt_sigreturn needs the stack as it is. */
	.globl	iodock_before
	.hidden	iodock_before
	.type	iodock_before, @function
	.p2align 4
iodock_before:
	ENTER
	movq	%rsp, %rdi
	call	iodock_record_before
	popq	%rax
	.cfi_adjust_cfa_offset -8
	LEAVE
	.size	iodock_before, .-iodock_before

	.globl	iodock_after
	.hidden	iodock_after
	.type	iodock_after, @function
	.p2align 4
iodock_after:
	ENTER
	movq	%rsp, %rdi
	call	iodock_record_after
	popq	%rax
	.cfi_adjust_cfa_offset -8
	LEAVE
	.size	iodock_after, .-iodock_after

/* Trampolines are written here when the library is loaded. */
	.section .text.trampolines, "ax", @progbits
	.globl	iodock_trampolines
	.hidden	iodock_trampolines
	.p2align 12
iodock_trampolines:
	.zero	65536
	.globl	iodock_trampolines_end
	.hidden	iodock_trampolines_end
iodock_trampolines_end:
	.section .note.GNU-stack, "", @progbits
