/* What is asked of libraries above MPI-IO, and the texts made of it. */
#ifndef IODOCK_LIBRARY_H
#define IODOCK_LIBRARY_H

#include "interfaces.h"

#define BETWEEN 31 /* a control character, which names seldom have */
enum { DIMENSIONS_MOST = 32 };
/* In the handle of a file of NetCDF, in the place of a variable. */
enum { OF_FILE = 0x7fffffff };
/* Of both NetCDF and PnetCDF: values did not fit in their type, and all that was asked for was moved; the library was built without the call. */
enum { NC_ERANGE = -60, NC_ENOTBUILT = -128 };

/* A file was opened, and its number may have stood for another one. */
void iodock_variables_begin(word file);
int iodock_is_new_variable(word library, word file, word variable);

/* A library, by the module that calls it and one of its functions. */
struct library { struct caller *caller; const void *sibling; };

/* What the function gives for these arguments, UNKNOWN if there is none. */
static inline word ask(const struct library *library, u32 number, const char *name, word a, word b, word c, word d, word e, word f, word g) {
	wide_call *function = (wide_call *)iodock_helper(library->caller, number, name, library->sibling);
	return function ? function(a, b, c, d, e, f, g, 0) : UNKNOWN;
}

static inline word product(word a, word b) {
	word both;
	return a < 0 || b < 0 || __builtin_mul_overflow(a, b, &both) ? UNKNOWN : both;
}

/* A text that is written, as far as there is room. */
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
