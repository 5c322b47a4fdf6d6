/* Helpers to query libraries above MPI-IO about their files and variables, and to build the texts that
 * describe them. */
#ifndef IODOCK_LIBRARY_H
#define IODOCK_LIBRARY_H

#include "interfaces.h"

#define BETWEEN 31 /* separator of fields in a text: a control character that names rarely contain */
enum { DIMENSIONS_MOST = 32 };
/* The value in place of a variable's number in the handle of a NetCDF file. */
enum { OF_FILE = 0x7fffffff };
/* Error codes of NetCDF and PnetCDF. NC_ERANGE: values did not fit into their type, but all were moved.
 * NC_ENOTBUILT: the library was built without the call. */
enum { NC_ERANGE = -60, NC_ENOTBUILT = -128 };

/* Called when a file was opened: forgets the variables of an earlier file with the same number. */
void iodock_variables_begin(word file);
int iodock_is_new_variable(word library, word file, word variable);

/* A library, identified by the module that calls it and by the address of one of its functions. */
struct library { struct caller *caller; const void *sibling; };

/* Calls a function of the library by its name. Returns its result, UNKNOWN if the library does not have
 * it. */
static inline word ask(const struct library *library, u32 number, const char *name, word a, word b, word c, word d, word e, word f, word g) {
	wide_call *function = (wide_call *)iodock_helper(library->caller, number, name, library->sibling);
	return function ? function(a, b, c, d, e, f, g, 0) : UNKNOWN;
}

static inline word product(word a, word b) {
	word both;
	return a < 0 || b < 0 || __builtin_mul_overflow(a, b, &both) ? UNKNOWN : both;
}

/* A text being written, from `at` up to `end`; the put functions cut what does not fit. */
struct text { char *at, *end; };

static inline void put_text(struct text *to, const char *from) {
	while (*from && to->at < to->end)
		*to->at++ = *from++;
}

static inline void put_number(struct text *to, unsigned long number) {
	char digits[24];
	u32 at = sizeof(digits) - 1;
	digits[at] = 0;
	do
		digits[--at] = (char)('0' + number % 10);
	while (number /= 10);
	put_text(to, digits + at);
}

static inline void put_between(struct text *to) {
	char between[] = {BETWEEN, 0};
	put_text(to, between);
}

static inline void put_numbers(struct text *to, const unsigned long *numbers, int count) {
	for (int i = 0; i < count && i < DIMENSIONS_MOST; i++) {
		if (i)
			put_text(to, "x");
		put_number(to, numbers[i]);
	}
}
#endif
