/* Macros by which the stubs save and restore the registers of a call site. */

/* struct frame: see state.h */
	.macro PUSH register
	pushq	\register
	.cfi_adjust_cfa_offset 8
	.endm

	.macro POP register
	popq	\register
	.cfi_adjust_cfa_offset -8
	.endm

	/* (vfork keeps its return address in %rdi, and its unwind information says so.) */
	.macro ENTER
	.cfi_startproc
	.cfi_def_cfa %rsp, 0
	.cfi_register %rip, %r11
	leaq	-128(%rsp), %rsp
	.cfi_def_cfa_offset 128
	PUSH	%r11
	.cfi_offset %rip, -136
	PUSH	%rcx
	PUSH	%r9
	PUSH	%r8
	PUSH	%r10
	PUSH	%rdx
	PUSH	%rsi
	PUSH	%rdi
	.cfi_offset %rdi, -192
	PUSH	%rax
	.endm

	/* Restores the registers and continues at TO. Registers that an unwinder needs are restored before the
	 * stack is freed. */
	.macro LEAVE to=*%rcx
	POP	%rdi
	.cfi_same_value %rdi
	POP	%rsi
	POP	%rdx
	POP	%r10
	POP	%r8
	POP	%r9
	POP	%rcx
	POP	%r11
	.cfi_register %rip, %r11
	leaq	128(%rsp), %rsp
	.cfi_adjust_cfa_offset -128
	jmpq	\to
	.endm
