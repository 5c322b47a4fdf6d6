/* Intercepts calls of NetCDF-C, without its header: files and variables are numbers, and no argument is
 * larger than a word. There is no call that opens a variable, so a variable is described with the first call
 * on it after its file was opened. When the call has succeeded, this code queries the library; it answers
 * such queries from memory. */

#include "library.h"

static const char family[] = "libnetcdf";
static struct caller *last;

enum kind { OPENS_KIND, CLOSES_KIND, DOES_KIND, WHOLE_KIND, ELEMENT_KIND, SOME_KIND, PUTS_NOTE_KIND, GETS_NOTE_KIND };
enum { NAME_MOST = 1024, FILTERS_MOST = 8, TEXT_MOST = 3 * NAME_MOST };
/* Constants of NetCDF: values of nc_type, classes of types, formats and a layout. */
enum { OF_TEXTS = 12, VARYING_CLASS = 13, COMPOUND_CLASS = 16, FORMAT_NETCDF4 = 3, FORMAT_NETCDF4_CLASSIC = 4, CHUNKED = 0 };

#define EACH_HELPER(ONE) \
	ONE(nc_inq_libvers) ONE(nc_inq_varndims) ONE(nc_inq_vardimid) ONE(nc_inq_dimlen) ONE(nc_inq_vartype) ONE(nc_inq_type) ONE(nc_inq_user_type) \
	ONE(nc_inq_compound_fieldtype) ONE(nc_inq_attlen) ONE(nc_inq_atttype) ONE(nc_inq_varname) ONE(nc_inq_grpname_full) ONE(nc_inq_format) \
	ONE(nc_inq_var_chunking) ONE(nc_inq_var_deflate) ONE(nc_inq_var_fletcher32) ONE(nc_inq_var_filter_ids) ONE(nc_inq_unlimdims) \
	ONE(nc_inq_grp_parent)
#define HELPER_NUMBER(name) HELPER_##name,
enum { EACH_HELPER(HELPER_NUMBER) ALL_HELPERS };
_Static_assert((int)ALL_HELPERS <= (int)HELPERS, "there is room for all");

/* Calls a function of the library; the value is 0 if it succeeds. */
#define TRY(name, a, b, c, d, e, f, g) \
	({ word got = ask(library, HELPER_##name, #name, (word)(a), (word)(b), (word)(c), (word)(d), (word)(e), (word)(f), (word)(g)); \
	   got == UNKNOWN ? -1 : (int)got; })

/* Returns the size in memory of an element of the file's type; UNKNOWN if the element contains pointers. */
static word bytes_of_type(const struct library *library, word file, int type) {
	unsigned long bytes = 0, fields = 0;
	int base = 0, class = 0;
	if (type < OF_TEXTS)
		return TRY(nc_inq_type, file, type, 0, &bytes, 0, 0, 0) ? UNKNOWN : (word)bytes;
	if (type == OF_TEXTS || TRY(nc_inq_user_type, file, type, 0, &bytes, &base, &fields, &class) || class == VARYING_CLASS)
		return UNKNOWN;
	for (unsigned long i = 0; class == COMPOUND_CLASS && i < fields; i++)
		if (TRY(nc_inq_compound_fieldtype, file, type, i, &base, 0, 0, 0) || base >= OF_TEXTS)
			return UNKNOWN;
	return (word)bytes;
}

static word bytes_of_element(const struct library *library, word file, word variable, int bytes) {
	int type = 0;
	if (bytes != OWN_TYPE)
		return bytes == IS_TEXT ? 1 : bytes == VARYING_BYTES ? UNKNOWN : bytes;
	return TRY(nc_inq_vartype, file, variable, &type, 0, 0, 0, 0) ? UNKNOWN : bytes_of_type(library, file, type);
}

/* Returns the number of the variable's dimensions, -1 if they are unknown or too many. */
static int dimensions_of(const struct library *library, word file, word variable, int *dimensions) {
	int count = 0;
	if (TRY(nc_inq_varndims, file, variable, &count, 0, 0, 0, 0) || count < 0 || count > DIMENSIONS_MOST)
		return -1;
	return dimensions && count && TRY(nc_inq_vardimid, file, variable, dimensions, 0, 0, 0, 0) ? -1 : count;
}

static word elements_of_all(const struct library *library, word file, word variable) {
	int dimensions[DIMENSIONS_MOST], count = dimensions_of(library, file, variable, dimensions);
	word all = count < 0 ? UNKNOWN : 1;
	for (int i = 0; i < count; i++) {
		unsigned long length = 0;
		all = TRY(nc_inq_dimlen, file, dimensions[i], &length, 0, 0, 0, 0) ? UNKNOWN : product(all, (word)length);
	}
	return all;
}

static word elements_of_some(const struct library *library, word file, word variable, const word *counts) {
	int count = dimensions_of(library, file, variable, 0);
	word all = count < 0 || (count && !counts) ? UNKNOWN : 1;
	for (int i = 0; i < count && all != UNKNOWN; i++)
		all = product(all, counts[i]);
	return all;
}

/* Returns the number of elements of an attribute. nc_put_att_text has no argument for the type, so its length
 * comes one argument earlier. */
static word elements_of_note(const struct library *library, enum kind kind, const word *given, int bytes) {
	unsigned long count = 0;
	if (kind == PUTS_NOTE_KIND)
		return given[bytes == IS_TEXT ? 3 : 4];
	return TRY(nc_inq_attlen, given[0], given[1], given[2], &count, 0, 0, 0) ? UNKNOWN : (word)count;
}

static word bytes_of_note(const struct library *library, enum kind kind, const word *given, int bytes) {
	int type = (int)given[3];
	word of_one = bytes == IS_TEXT ? 1 : bytes;
	if (bytes == VARYING_BYTES)
		return UNKNOWN;
	if (bytes == OWN_TYPE && kind == GETS_NOTE_KIND && TRY(nc_inq_atttype, given[0], given[1], given[2], &type, 0, 0, 0))
		return UNKNOWN;
	if (bytes == OWN_TYPE)
		of_one = bytes_of_type(library, given[0], type);
	return product(elements_of_note(library, kind, given, bytes), of_one);
}

static word asked_for(const struct library *library, enum kind kind, const word *given, int bytes) {
	word elements = UNKNOWN;
	if (kind == PUTS_NOTE_KIND || kind == GETS_NOTE_KIND)
		return bytes_of_note(library, kind, given, bytes);
	if (kind == WHOLE_KIND)
		elements = elements_of_all(library, given[0], given[1]);
	if (kind == ELEMENT_KIND)
		elements = 1;
	if (kind == SOME_KIND)
		elements = elements_of_some(library, given[0], given[1], (const word *)given[3]);
	return elements > 0 ? product(elements, bytes_of_element(library, given[0], given[1], bytes)) : elements;
}

/* Returns the number of the file that contains a group. In NetCDF 4 it is the upper half of the group's
 * number; in NetCDF 3 there are no groups. */
static word file_of(word group) {
	u32 number = (u32)group;
	return number >> 16 ? (word)(number & 0xffff0000u) : (word)number;
}

static word of_library(const struct library *library, word number) {
	return number ^ (word)iodock_helper(library->caller, HELPER_nc_inq_libvers, "nc_inq_libvers", library->sibling) << 12;
}

static void put_name(const struct library *library, struct text *to, word group, word variable) {
	char name[NAME_MOST + 1];
	unsigned long bytes = 0;
	name[0] = name[NAME_MOST] = 0;
	if (!TRY(nc_inq_grpname_full, group, &bytes, 0, 0, 0, 0, 0) && bytes > 1 && bytes < NAME_MOST &&
	    !TRY(nc_inq_grpname_full, group, &bytes, name, 0, 0, 0, 0)) {
		put_text(to, name);
		put_text(to, "/");
	}
	name[0] = 0;
	if (!TRY(nc_inq_varname, group, variable, name, 0, 0, 0, 0))
		put_text(to, name);
}

/* Whether a dimension is unlimited. It may belong to the group or to a group above it. */
static int is_unlimited(const struct library *library, word group, int dimension) {
	for (int above = 0; above < DIMENSIONS_MOST; above++) {
		int dimensions[DIMENSIONS_MOST], count = 0, parent = 0;
		if (TRY(nc_inq_unlimdims, group, &count, 0, 0, 0, 0, 0) || count > DIMENSIONS_MOST || TRY(nc_inq_unlimdims, group, &count, dimensions, 0, 0, 0, 0))
			return 1;
		for (int i = 0; i < count; i++)
			if (dimensions[i] == dimension)
				return 1;
		if (TRY(nc_inq_grp_parent, group, &parent, 0, 0, 0, 0, 0))
			return 0;
		group = parent;
	}
	return 1;
}

/* Writes the names of the variable's filters. In some versions of NetCDF the list of filters contains
 * deflate, shuffle and fletcher32, in others not, so these are queried separately. */
static void put_filters(const struct library *library, struct text *to, word group, word variable) {
	enum { DEFLATE = 1, SHUFFLE = 2, CHECKS = 3 };
	static const char *const names[] = {"", "deflate", "shuffle", "fletcher32", "szip"};
	int is_on[CHECKS + 1] = {0}, level = 0;
	u32 numbers[FILTERS_MOST];
	unsigned long count = 0;
	const char *between = "";
	if (TRY(nc_inq_var_filter_ids, group, variable, &count, 0, 0, 0, 0) || count > FILTERS_MOST ||
	    (count && TRY(nc_inq_var_filter_ids, group, variable, &count, numbers, 0, 0, 0)))
		count = 0;
	TRY(nc_inq_var_deflate, group, variable, &is_on[SHUFFLE], &is_on[DEFLATE], &level, 0, 0);
	TRY(nc_inq_var_fletcher32, group, variable, &is_on[CHECKS], 0, 0, 0, 0);
	for (unsigned long i = 0; i < count; i++)
		if (numbers[i] <= CHECKS)
			is_on[numbers[i]] = 1;
	static const u8 first[] = {SHUFFLE, DEFLATE, CHECKS};
	for (u32 i = 0; i < sizeof(first); i++)
		if (is_on[first[i]])
			put_text(to, between), put_text(to, names[first[i]]), between = ",";
	for (unsigned long i = 0; i < count; i++) {
		if (numbers[i] <= CHECKS)
			continue;
		put_text(to, between), between = ",";
		if (numbers[i] < sizeof(names) / sizeof(*names))
			put_text(to, names[numbers[i]]);
		else
			put_number(to, numbers[i]);
	}
}

/* Writes the name, the layout, the size of an element, the extent, the chunk's extent and the filters of a
 * variable. An extent with an unlimited dimension is omitted: the dimension's length may exceed that of this
 * variable. */
static void describe(const struct library *library, word group, word variable, char *place) {
	static const char *const layouts[] = {"chunked", "contiguous", "compact", "", "virtual"};
	struct text text = {place, place + TEXT_MOST};
	unsigned long lengths[DIMENSIONS_MOST], chunk[DIMENSIONS_MOST];
	int dimensions[DIMENSIONS_MOST], count = dimensions_of(library, group, variable, dimensions), format = 0, layout = -1, type = 0, grows = 0;
	for (int i = 0; i < count && !grows; i++)
		grows = is_unlimited(library, group, dimensions[i]) || TRY(nc_inq_dimlen, group, dimensions[i], &lengths[i], 0, 0, 0, 0);
	int is_netcdf4 = !TRY(nc_inq_format, group, &format, 0, 0, 0, 0, 0) && (format == FORMAT_NETCDF4 || format == FORMAT_NETCDF4_CLASSIC);
	put_name(library, &text, group, variable);
	put_between(&text);
	if (is_netcdf4 && count >= 0 && TRY(nc_inq_var_chunking, group, variable, &layout, chunk, 0, 0, 0))
		layout = -1;
	if (layout >= 0 && layout < (int)(sizeof(layouts) / sizeof(*layouts)))
		put_text(&text, layouts[layout]);
	else if (format && !is_netcdf4 && !grows)
		put_text(&text, "contiguous");
	put_between(&text);
	unsigned long bytes = 0;
	if (!TRY(nc_inq_vartype, group, variable, &type, 0, 0, 0, 0) && !TRY(nc_inq_type, group, type, 0, &bytes, 0, 0, 0) && bytes)
		put_number(&text, bytes);
	put_between(&text);
	if (count > 0 && !grows)
		put_numbers(&text, lengths, count);
	put_between(&text);
	if (count > 0 && is_netcdf4 && layout == CHUNKED)
		put_numbers(&text, chunk, count);
	put_between(&text);
	if (is_netcdf4)
		put_filters(library, &text, group, variable);
	*text.at = 0;
}

/* Whether `path` is the path of a file, not a URL of a web address or of a store that is a folder. */
static int is_path(const char *path) {
	for (; *path; path++)
		if (path[0] == ':' && path[1] == '/' && path[2] == '/')
			return 0;
	return 1;
}

/* Sets the facts about a call that has succeeded. Returns the text for its record, 0 for none. */
static const char *note(const struct library *library, enum kind kind, int detail, const word *given, word *facts, char *place) {
	if (kind == OPENS_KIND) {
		const int *opened = (const int *)given[detail & ~IN_MEMORY];
		if (!opened)
			return 0;
		int file = *opened;
		iodock_variables_begin(file_of(file));
		facts[HANDLE] = file_of(file) << 32 | OF_FILE;
		return !(detail & IN_MEMORY) && is_path((const char *)given[0]) ? (const char *)given[0] : 0;
	}
	if (kind <= DOES_KIND)
		return 0;
	facts[BYTES] = asked_for(library, kind, given, detail);
	if (kind == PUTS_NOTE_KIND || kind == GETS_NOTE_KIND)
		return 0;
	facts[VARIABLE] = (word)((unsigned long)(u32)given[0] << 32 | (u32)given[1]);
	if (!iodock_is_new_variable(of_library(library, 0), file_of(given[0]), facts[VARIABLE]))
		return 0;
	describe(library, given[0], given[1], place);
	return place;
}

static __attribute__((noinline)) word hand_on(u32 number, enum kind kind, int detail, const char *name, const void *own, const void *address, const word *given) {
	struct caller *caller = caller_at(address, family, &last);
	wide_call *real = real_of(family, address, name, caller ? &caller->real[number - CALLS] : 0, own);
	if (unlikely(!real))
		return NC_ENOTBUILT;
	struct library library = {caller, (const void *)real};
	struct within outer;
	word facts[FACTS_OF_VARIABLE] = {0, UNKNOWN, UNKNOWN, UNKNOWN, 0, UNKNOWN};
	if (kind != OPENS_KIND)
		facts[HANDLE] = file_of(given[0]) << 32 | OF_FILE;
	int is_told = caller && begins(number, NETCDF_LAYER, &outer);
	word result = real(given[0], given[1], given[2], given[3], given[4], given[5], given[6], given[7]);
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
	TAKEN word name(word a, word b, word c, word d, word e, word f, word g, word h) { \
		word given[8] = {a, b, c, d, e, f, g, h}; \
		return hand_on(NUMBER_##name, kind, detail, #name, (const void *)name, __builtin_return_address(0), given); \
	}
#define OPENS(name, place) TAKE(name, OPENS_KIND, place)
#define CLOSES(name, detail) TAKE(name, CLOSES_KIND, detail)
#define DOES(name, detail) TAKE(name, DOES_KIND, detail)
#define WHOLE(name, bytes) TAKE(name, WHOLE_KIND, bytes)
#define ELEMENT(name, bytes) TAKE(name, ELEMENT_KIND, bytes)
#define SOME(name, bytes) TAKE(name, SOME_KIND, bytes)
#define PUTS_NOTE(name, bytes) TAKE(name, PUTS_NOTE_KIND, bytes)
#define GETS_NOTE(name, bytes) TAKE(name, GETS_NOTE_KIND, bytes)

EACH_OF_NETCDF(OPENS, CLOSES, DOES, WHOLE, ELEMENT, SOME, PUTS_NOTE, GETS_NOTE)
