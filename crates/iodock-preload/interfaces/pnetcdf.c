/* Intercepts calls of PnetCDF, without its header: files and variables are numbers, and no argument is larger
 * than a word. This code makes only queries that the library answers from memory, and no collective ones. */

#include "library.h"

typedef word widest_call(word, word, word, word, word, word, word, word, word, word);

static const char family[] = "libpnetcdf";
static struct caller *last;

enum { OPENS_KIND, CLOSES_KIND, DOES_KIND, WHOLE_KIND, ELEMENT_KIND, PART_KIND, STRIDED_KIND, MAPPED_KIND, PARTS_KIND, LAID_KIND, OF_MANY = 16 };
/* Index of the argument with the values, by kind; their count and MPI type follow. For OF_MANY it is one
 * higher. */
static const u8 values_at[] = {[WHOLE_KIND] = 2, [ELEMENT_KIND] = 3, [PART_KIND] = 4, [STRIDED_KIND] = 5, [MAPPED_KIND] = 6, [PARTS_KIND] = 5, [LAID_KIND] = 3};
enum { ARGUMENTS = 10, NAME_MOST = 1024, TEXT_MOST = 2 * NAME_MOST, COUNT_OF_TYPE = -1 };

#define EACH_HELPER(ONE) \
	ONE(ncmpi_inq_libvers) ONE(ncmpi_inq_varndims) ONE(ncmpi_inq_vardimid) ONE(ncmpi_inq_dimlen) ONE(ncmpi_inq_vartype) ONE(ncmpi_inq_varname) \
	ONE(ncmpi_inq_unlimdim)
#define HELPER_NUMBER(name) HELPER_##name,
enum { EACH_HELPER(HELPER_NUMBER) ALL_HELPERS };
_Static_assert((int)ALL_HELPERS <= (int)HELPERS, "there is room for all");

/* Calls a function of the library; the value is 0 if it succeeds. */
#define TRY(name, a, b, c) \
	({ word got = ask(library, HELPER_##name, #name, (word)(a), (word)(b), (word)(c), 0, 0, 0, 0); \
	   got == UNKNOWN ? -1 : (int)got; })

static word bytes_in_file(const struct library *library, word file, word variable) {
	static const u8 bytes[] = {0, 1, 1, 2, 4, 4, 8, 1, 2, 4, 8, 8}; /* size of an element for each value of nc_type */
	int type = 0;
	return TRY(ncmpi_inq_vartype, file, variable, &type) || type <= 0 || type >= (int)sizeof(bytes) ? UNKNOWN : bytes[type];
}

/* Returns the number of the variable's dimensions, -1 if they are unknown or too many. */
static int dimensions_of(const struct library *library, word file, word variable, int *dimensions) {
	int count = 0;
	if (TRY(ncmpi_inq_varndims, file, variable, &count) || count < 0 || count > DIMENSIONS_MOST)
		return -1;
	return count && TRY(ncmpi_inq_vardimid, file, variable, dimensions) ? -1 : count;
}

static word elements_of_all(const struct library *library, word file, word variable) {
	int dimensions[DIMENSIONS_MOST], count = dimensions_of(library, file, variable, dimensions);
	word all = count < 0 ? UNKNOWN : 1;
	for (int i = 0; i < count; i++) {
		word length = 0;
		all = TRY(ncmpi_inq_dimlen, file, dimensions[i], &length) ? UNKNOWN : product(all, length);
	}
	return all;
}

static word elements_of_some(const struct library *library, word file, word variable, const word *counts) {
	int count = 0;
	if (TRY(ncmpi_inq_varndims, file, variable, &count) || count < 0 || (count && !counts))
		return UNKNOWN;
	word all = 1;
	for (int i = 0; i < count; i++)
		all = product(all, counts[i]);
	return all;
}

static word elements_of_parts(const struct library *library, const word *given) {
	const word *const *counts = (const word *const *)given[4];
	word all = counts ? 0 : (int)given[2];
	for (int i = 0; counts && i < (int)given[2]; i++) {
		word some = elements_of_some(library, given[0], given[1], counts[i]);
		if (some < 0)
			return UNKNOWN;
		all += some;
	}
	return all;
}

static word elements(const struct library *library, u32 kind, word variable, const word *given, const word *counts) {
	switch (kind) {
	case WHOLE_KIND:
		return elements_of_all(library, given[0], variable);
	case ELEMENT_KIND:
		return 1;
	case PARTS_KIND:
		return elements_of_parts(library, given);
	case LAID_KIND:
		return UNKNOWN;
	default:
		return elements_of_some(library, given[0], variable, counts);
	}
}

/* Returns the bytes that a call moves for one variable. With OWN_TYPE the values are `count` elements of an
 * MPI type. If there is no type, the type in the file applies; if there is no count, the number of
 * elements. */
static word bytes_of(const struct library *library, u32 kind, int bytes, word variable, const word *given, const word *counts, word count, word type) {
	int is_type = bytes == OWN_TYPE ? iodock_is_type(type) : 0;
	if (is_type < 0)
		return UNKNOWN;
	if (is_type && count != COUNT_OF_TYPE)
		return iodock_bytes_of(count, type);
	word all = elements(library, kind, variable, given, counts);
	if (all <= 0)
		return all;
	if (bytes == OWN_TYPE)
		bytes = (int)(is_type ? iodock_bytes_of(1, type) : bytes_in_file(library, given[0], variable));
	return bytes <= 0 ? UNKNOWN : product(all, bytes);
}

/* Returns entry `at` of an array of MPI types, which are 32-bit numbers in MPICH and pointers in Open MPI. */
static word type_in(const word *types, word at) {
	return iodock_handle_bytes() == 4 ? ((const int *)types)[at] : types[at];
}

static word asked_for(const struct library *library, u32 kind, int bytes, const word *given) {
	u32 of_one = kind & ~(u32)OF_MANY, at = values_at[of_one] + (kind & OF_MANY ? 1 : 0);
	if (!(kind & OF_MANY))
		return bytes_of(library, of_one, bytes, given[1], given, (const word *)given[3], given[at + 1], given[at + 2]);
	word all = 0;
	if (bytes == OWN_TYPE && !iodock_handle_bytes())
		return UNKNOWN;
	for (int i = 0; i < (int)given[1]; i++) {
		const word *const *counts = of_one >= PART_KIND ? (const word *const *)given[4] : 0;
		word count = bytes == OWN_TYPE ? ((const word *)given[at + 1])[i] : 0, type = bytes == OWN_TYPE ? type_in((const word *)given[at + 2], i) : 0;
		word some = bytes_of(library, of_one, bytes, ((const int *)given[2])[i], given, counts ? counts[i] : 0, count, type);
		if (some < 0)
			return UNKNOWN;
		all += some;
	}
	return all;
}

static word of_library(const struct library *library, word number) {
	return number ^ (word)iodock_helper(library->caller, HELPER_ncmpi_inq_libvers, "ncmpi_inq_libvers", library->sibling) << 12;
}

/* Writes the name, the layout, the size of an element and the extent of a variable. PnetCDF has no chunks. An
 * extent with an unlimited dimension is omitted. */
static void describe(const struct library *library, word file, word variable, char *place) {
	struct text text = {place, place + TEXT_MOST};
	unsigned long lengths[DIMENSIONS_MOST];
	int dimensions[DIMENSIONS_MOST], count = dimensions_of(library, file, variable, dimensions), unlimited = -1;
	int is_known = count >= 0 && !TRY(ncmpi_inq_unlimdim, file, &unlimited, 0);
	for (int i = 0; i < count && is_known; i++)
		is_known = dimensions[i] != unlimited && !TRY(ncmpi_inq_dimlen, file, dimensions[i], &lengths[i]);
	char name[NAME_MOST];
	name[0] = 0;
	if (!TRY(ncmpi_inq_varname, file, variable, name))
		put_text(&text, name);
	put_between(&text);
	if (is_known)
		put_text(&text, "contiguous");
	put_between(&text);
	word bytes = bytes_in_file(library, file, variable);
	if (bytes > 0)
		put_number(&text, (unsigned long)bytes);
	put_between(&text);
	if (is_known)
		put_numbers(&text, lengths, count);
	*text.at = 0;
}

static word handle_of(word file) {
	return (word)((unsigned long)(u32)file << 32 | OF_FILE);
}

/* Sets the facts about a call that has succeeded. Returns the text for its record, 0 for none. */
static const char *note(const struct library *library, u32 kind, int detail, const word *given, word *facts, char *place) {
	if (kind == OPENS_KIND) {
		if (!given[4])
			return 0;
		int file = *(const int *)given[4];
		iodock_variables_begin((u32)file);
		facts[HANDLE] = handle_of(file);
		return (const char *)given[1];
	}
	if (kind <= DOES_KIND)
		return 0;
	facts[BYTES] = asked_for(library, kind, detail, given);
	if (kind & OF_MANY)
		return 0;
	facts[VARIABLE] = (word)((unsigned long)(u32)given[0] << 32 | (u32)given[1]);
	if (!iodock_is_new_variable(of_library(library, 0), (u32)given[0], facts[VARIABLE]))
		return 0;
	describe(library, given[0], given[1], place);
	return place;
}

static __attribute__((noinline)) word hand_on(u32 number, u32 kind, int detail, const char *name, const void *own, const void *address, const word *given) {
	struct caller *caller = caller_at(address, family, &last);
	widest_call *real = (widest_call *)(const void *)real_of(family, address, name, caller ? &caller->real[number - CALLS] : 0, own);
	if (unlikely(!real))
		return NC_ENOTBUILT;
	struct library library = {caller, (const void *)real};
	struct within outer;
	word facts[FACTS_OF_VARIABLE] = {0, UNKNOWN, UNKNOWN, UNKNOWN, 0, UNKNOWN};
	if (kind != OPENS_KIND)
		facts[HANDLE] = handle_of(given[0]);
	int is_told = caller && begins(number, PNETCDF_LAYER, &outer);
	word result = real(given[0], given[1], given[2], given[3], given[4], given[5], given[6], given[7], given[8], given[9]);
	if (!is_told)
		return result;
	char text[TEXT_MOST + 1];
	const char *said = 0;
	facts[RESULT] = (int)result;
	if (!(int)result || ((int)result == NC_ERANGE && kind > DOES_KIND)) {
		iodock_within.layer = OWN_CALLS, iodock_within.frame = __builtin_frame_address(0);
		said = note(&library, kind, detail, given, facts, text);
	}
	if (facts[HANDLE] != UNKNOWN)
		facts[HANDLE] = of_library(&library, facts[HANDLE]);
	iodock_within = outer;
	iodock_interface(ENDS, number, facts, FACTS_OF_VARIABLE, said);
	return result;
}

#define TAKE(name, kind, detail) \
	TAKEN word name(word a, word b, word c, word d, word e, word f, word g, word h, word i, word j) { \
		word given[ARGUMENTS] = {a, b, c, d, e, f, g, h, i, j}; \
		return hand_on(NUMBER_##name, kind, detail, #name, (const void *)name, __builtin_return_address(0), given); \
	}

EACH_OF_PNETCDF(TAKE)
