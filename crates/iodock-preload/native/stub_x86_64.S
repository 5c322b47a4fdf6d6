/* The stub to which patched sites jump. A site's trampoline puts its own return address into %rcx and the
 * address behind the original `syscall` into %r11 (the kernel overwrites both anyway), and jumps here. No
 * other register than %rax may change. The function may use the 128 bytes below %rsp (red zone).
 *
 * The call frame information describes a call by the site, so that unwinding from a signal handler (thread
 * cancellation, C++ exceptions) continues into libc and its callers. */

#include "hot.h"

	.text

#include "frame_x86_64.h"

/* stub_stacks_x86_64.S includes this file with STACKS defined. */
#ifndef STACKS
#define PLAIN iodock_plain
#endif

/* Does the same as put() in numbers.c, at %r8, but only for values of at most 56 bits. Changes the value
 * and %rcx. */
	.macro PUT value
	movq	\value, %rcx
	orq	$1, %rcx
	bsrq	%rcx, %rcx
	cmpl	$55, %ecx
	ja	.Lother
	imull	$37, %ecx, %ecx
	shrl	$8, %ecx
	leaq	1(\value,\value), \value
	shlq	%cl, \value
	movq	\value, (%r8)
	leaq	1(%r8,%rcx), %r8
	.endm

/* Does the same as put_signed() for %rdx. */
	.macro PUT_SIGNED
	movq	%rdx, %rcx
	addq	%rdx, %rdx
	sarq	$63, %rcx
	xorq	%rcx, %rdx
	PUT	%rdx
	.endm

/* This stub makes the call. */
	.globl	PLAIN
	.hidden	PLAIN
	.type	PLAIN, @function
	.p2align 6
PLAIN:
	ENTER
	cmpl	$0, iodock_stopped(%rip)
	jne	.Lleft_alone
	rdtsc
	shlq	$32, %rdx
	orq	%rdx, %rax
	pushq	%rax
	.cfi_adjust_cfa_offset 8
	/* The call in flight of this thread: see flight.c. The number is written last, because it states that the
	 * rest is valid. */
	movq	iodock_own@gottpoff(%rip), %r11
	movq	%fs:(%r11), %r11
	testq	%r11, %r11
	jz	.Lbegin
	cmpq	$1, STATE_TAKEN_AND_LEVEL(%r11)
	jne	.Lbegin
	cmpq	$0, STATE_FLIGHT(%r11)
	jne	.Lbegin
	leaq	-8(%rsp), %rdx
	movq	%rdx, STATE_FLIGHT(%r11)
	/* From here on a handler does not touch the chunk. */
	movl	$1, STATE_LEVEL(%r11)
	movq	%rdx, STATE_WRITER(%r11)
	/* Check again, now that end_records() sees the level: the thread may have been preempted after the first
	 * check. */
	cmpl	$1, STATE_TAKEN_AND_LEVEL(%r11)
	jne	.Lno_chunk
	movq	STATE_CHUNK(%r11), %rcx
	testq	%rcx, %rcx
	jz	.Lno_chunk
	movl	%edi, CHUNK_FLIGHT_FD(%rcx)
	movq	%rax, CHUNK_FLIGHT_START(%rcx)
	movl	8(%rsp), %eax
	incl	%eax
	movl	%eax, CHUNK_FLIGHT(%rcx)
	/* The same as leave() in levels.c. */
	cmpq	%rdx, STATE_WRITER(%r11)
	jne	.Lbegun
	movl	$0, STATE_LEVEL(%r11)
.Lbegun:
	movq	32(%rsp), %rdx
	movq	8(%rsp), %rax
	syscall
	pushq	%rax
	.cfi_adjust_cfa_offset 8
	/* Writes the records of read, write, pread64 and pwrite64, the most frequent ones. They are as from
	 * write_fields(), with a shorter head. Only %rax, %rdx, %rsi, %r8, %r9, %rcx and %r11 are used, so few
	 * registers must be restored. Other calls continue at .Lno_data. The clock is read after the first loads,
	 * because the loads then complete during the 12 ns that it takes. */
	movl	16(%rsp), %ecx
	movq	iodock_own@gottpoff(%rip), %r11
	movq	%fs:(%r11), %r11
	testq	%r11, %r11
	jz	.Learly
	cmpq	$1, STATE_TAKEN_AND_LEVEL(%r11)
	jne	.Learly
	cmpq	%rsp, STATE_FLIGHT(%r11)
	jne	.Learly
	/* From here on a handler's calls go to another stream. */
	movl	$1, STATE_LEVEL(%r11)
	movq	%rsp, STATE_WRITER(%r11)
	/* Check again, for the same reason as above. */
	cmpl	$1, STATE_TAKEN_AND_LEVEL(%r11)
	jne	.Lother_early
	movq	STATE_CHUNK(%r11), %r8
	testq	%r8, %r8
	jz	.Lother_early
	rdtsc
	shlq	$32, %rdx
	orq	%rdx, %rax
#ifdef STACKS
	/* If the stack is not that of the last call with this code, the general path writes it. */
	movq	%r11, %rdi
	movq	%rsp, %rsi
	movq	%rbp, %rdx
	PUSH	%rax
	PUSH	%r11
	call	iodock_has_same_stack
	movl	%eax, %edx
	POP	%r11
	POP	%rax
	movl	16(%rsp), %ecx
	movq	24(%rsp), %rdi
	movq	48(%rsp), %r10
	testl	%edx, %edx
	jz	.Lother_stack
#endif
	cmpl	$LAST_DATA_NUMBER, %ecx
	ja	.Lno_data
	movl	$DATA_NUMBERS, %edx
	btl	%ecx, %edx
	jnc	.Lno_data
	movq	STATE_AT(%r11), %r8
	movq	%rax, %r9
	shrq	$TIME_SHIFT, %r9
	leaq	RECORD_MOST(%r8), %rdx
	cmpq	%rdx, STATE_LIMIT(%r11)
	jb	.Lother
	leal	HEAD_READ(,%rcx,8), %eax
	cmpl	$2, %ecx
	jb	.Ltimes
	movl	$HEAD_PREAD, %eax
	movl	$HEAD_PWRITE, %edx
	cmpl	$17, %ecx
	cmovnel	%edx, %eax
.Ltimes:
	incq	%r8
	movq	8(%rsp), %rdx
	shrq	$TIME_SHIFT, %rdx
	movq	%r9, %rsi
	subq	%rdx, %rsi
	/* Negative values are too large for PUT. */
	subq	STATE_END(%r11), %rdx
	PUT	%rdx
	PUT	%rsi
	cmpl	%edi, STATE_FD(%r11)
	je	.Lsame_fd
	addl	$HAS_FD, %eax
	movslq	%edi, %rdx
	PUT_SIGNED
.Lsame_fd:
	movq	40(%rsp), %rsi
	cmpq	%rsi, STATE_SIZE(%r11)
	je	.Lsame_size
	addl	$HAS_SIZE, %eax
	movq	%rsi, %rdx
	PUT	%rdx
.Lsame_size:
	movq	(%rsp), %rdx
	cmpq	%rsi, %rdx
	je	.Ldid_all
	addl	$HAS_RESULT, %eax
	PUT_SIGNED
.Ldid_all:
	cmpl	$HEAD_PREAD, %eax
	jb	.Lwritten
	movq	%r10, %rdx
	subq	STATE_OFFSET(%r11), %rdx
	jz	.Lpredicted
	testl	$(1 << BLOCK_SHIFT) - 1, %edx
	jnz	.Lbytes
	cmpq	%rsi, (%rsp)
	jne	.Lbytes
	sarq	$BLOCK_SHIFT, %rdx
	addl	$WITH_BLOCKS - WITH_OFFSET, %eax
.Lbytes:
	addl	$WITH_OFFSET, %eax
	PUT_SIGNED
.Lpredicted:
	xorl	%edx, %edx
	movq	(%rsp), %rcx
	testq	%rcx, %rcx
	cmovnsq	%rcx, %rdx
	addq	%r10, %rdx
	movq	%rdx, STATE_OFFSET(%r11)
.Lwritten:
	/* The same as commit_landing() in chunks.c. */
	movq	STATE_CHUNK(%r11), %rcx
	testq	%rcx, %rcx
	jz	.Lnot_next
	cmpq	%rsp, STATE_FLIGHT(%r11)
	jne	.Lnot_next
	movl	CHUNK_USED(%rcx), %edx
	addq	%rcx, %rdx
	cmpq	%rdx, STATE_AT(%r11)
	jne	.Lnot_next
	movb	%al, (%rdx)
	movl	%edi, STATE_FD(%r11)
	movq	%rsi, STATE_SIZE(%r11)
	movq	%r9, STATE_END(%r11)
	movq	%r8, STATE_AT(%r11)
	cmpq	%rcx, STATE_CHUNK(%r11)
	jne	.Lnot_next
	/* From here on the call is no longer in flight: the bytes above are zero. */
	subl	%ecx, %r8d
	movq	%r8, CHUNK_USED(%rcx)
	cmpq	%rsp, STATE_FLIGHT(%r11)
	jne	.Llate
	cmpl	$1, STATE_LEVEL(%r11)
	jne	.Llate
	movl	$0, STATE_LEVEL(%r11)
	movq	$0, STATE_FLIGHT(%r11)
.Lback:
	movq	(%rsp), %rax
	movq	32(%rsp), %rsi
	movq	40(%rsp), %rdx
	movq	56(%rsp), %r8
	movq	64(%rsp), %r9
	movq	72(%rsp), %rcx
	movq	80(%rsp), %r11
	.cfi_remember_state
	.cfi_same_value %rdi
	.cfi_register %rip, %r11
	leaq	216(%rsp), %rsp
	.cfi_adjust_cfa_offset -216
	jmpq	*%rcx
	.cfi_restore_state
	.cfi_def_cfa_offset 216
	/* In most cases the call was considered abandoned, and its record exists without a result. */
.Lnot_next:
	movq	%r11, %rdi
	movq	%rsp, %rsi
	call	iodock_not_next
	jmp	.Lrecorded
.Llate:
	movq	%r11, %rdi
	movq	%rsp, %rsi
	call	iodock_land_late
	jmp	.Lrecorded
.Lno_data:
	movq	%r11, %rdi
	movq	%rsp, %rsi
	movq	%rax, %rdx
	call	iodock_record_short
	testq	%rax, %rax
	jz	.Lrecorded
	jmp	.Lany
.Lother:
	movq	%r9, %rax
	shlq	$TIME_SHIFT, %rax
#ifdef STACKS
.Lother_stack:
#endif
	cmpq	%rsp, STATE_WRITER(%r11)
	jne	.Lany
	movl	$0, STATE_LEVEL(%r11)
	jmp	.Lany
.Lother_early:
	cmpq	%rsp, STATE_WRITER(%r11)
	jne	.Learly
	movl	$0, STATE_LEVEL(%r11)
.Learly:
	/* A handler may have forbidden the clock during the call. In that case the state is not TAKEN either. */
	cmpl	$0, iodock_stopped(%rip)
	jne	.Lrecorded
	rdtsc
	shlq	$32, %rdx
	orq	%rdx, %rax
.Lany:
	movq	%rax, %rsi
	movq	%rsp, %rdi
#ifdef STACKS
	movq	%rbp, %rdx
#endif
	call	iodock_record
.Lrecorded:
	.cfi_remember_state
	POP	%rax
	leaq	16(%rsp), %rsp
	.cfi_adjust_cfa_offset -16
	LEAVE
	.cfi_restore_state
	.cfi_def_cfa_offset 208
.Lno_chunk:
	cmpq	%rdx, STATE_WRITER(%r11)
	jne	.Lbegin
	movl	$0, STATE_LEVEL(%r11)
	movq	$0, STATE_FLIGHT(%r11)
.Lbegin:
	movq	%rsp, %rdi
	call	iodock_begin
	movq	16(%rsp), %rdi
	movq	24(%rsp), %rsi
	movq	40(%rsp), %r10
	movq	48(%rsp), %r8
	movq	56(%rsp), %r9
	jmp	.Lbegun
	.cfi_adjust_cfa_offset -8
	/* Recording has stopped in this process: the clock may be forbidden (PR_SET_TSC, strict seccomp). */
.Lleft_alone:
	movq	(%rsp), %rax
	syscall
	leaq	8(%rsp), %rsp
	.cfi_adjust_cfa_offset -8
	LEAVE
	.cfi_endproc
	.size	PLAIN, .-PLAIN

#ifndef STACKS
/* The trampoline makes the call on the program's own stack, because the call may return on another stack
 * (clone), twice on the same one (vfork), or never (exec, exit). This also applies if the number is known only
 * at run time (syscall(3)), because rt_sigreturn needs an unchanged stack. */
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
	.cfi_endproc
	.size	iodock_before, .-iodock_before

	.globl	iodock_guarded
	.hidden	iodock_guarded
	.type	iodock_guarded, @function
	.p2align 4
/* Calls that may unmap our memory. They are made like others, unless iodock_guard() has made them. */
iodock_guarded:
	ENTER
	movq	%rsp, %rdi
	call	iodock_guard
	testl	%eax, %eax
	jz	.Lnot_made
	popq	%rax
	.cfi_adjust_cfa_offset -8
	.cfi_remember_state
	LEAVE
	.cfi_restore_state
	.cfi_adjust_cfa_offset 8
.Lnot_made:
	movq	(%rsp), %rax
	leaq	8(%rsp), %rsp
	.cfi_adjust_cfa_offset -8
	LEAVE	"*iodock_stub(%rip)"
	.cfi_endproc
	.size	iodock_guarded, .-iodock_guarded

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
	.cfi_endproc
	.size	iodock_after, .-iodock_after
#endif

	.section .note.GNU-stack, "", @progbits
