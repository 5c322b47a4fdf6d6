/* Intercepts calls of HDF5 since 1.10, without its header: identifiers have 64 bits, and no other argument is
 * larger. (In 1.8 identifiers have 32 bits; such calls are passed on but not recorded.) When a call has
 * succeeded, this code queries the library about its objects, outside of the library's locks. It makes only
 * queries that can't fail, because HDF5 would print an error. */

#include "interfaces.h"
#include "library.h"

static const char family[] = "libhdf5";
static struct caller *last;

enum { FILE_KIND, OBJECT_KIND, UNNAMED_KIND, DATA_KIND, MANY_KIND, WRITES_CHUNK_KIND, READS_CHUNK_KIND, VALUE_KIND, PLAIN_KIND, RELEASES_KIND };
#define IDENTIFIER_LEAST (1l << 32)
enum { ALL = 0, IS_FILE = 1, IS_DATASET = 5, KIND_AT = 56, CHUNKED = 2, VIRTUAL = 3, FILTERS_MOST = 8, NAME_MOST = 1024, UNNAMED_MOST = 4096 };
/* HDF5's classes of types (H5T_class_t). */
enum { TEXTS = 3, COMPOUND = 6, REFERENCE = 7, VARYING = 9, ARRAY = 10 };

#define EACH_HELPER(ONE) \
	ONE(H5get_libversion) ONE(H5Tget_size) ONE(H5Tget_class) ONE(H5Tis_variable_str) ONE(H5Tdetect_class) ONE(H5Sget_select_npoints) \
	ONE(H5Sget_simple_extent_npoints) ONE(H5Sget_simple_extent_dims) ONE(H5Sget_simple_extent_ndims) ONE(H5Sclose) ONE(H5Dget_space) ONE(H5Iget_type) \
	ONE(H5Iget_name) ONE(H5Fget_name) ONE(H5Dget_type) ONE(H5Tclose) ONE(H5Dget_create_plist) ONE(H5Pget_layout) ONE(H5Pget_chunk) \
	ONE(H5Pget_nfilters) ONE(H5Pget_filter2) ONE(H5Pclose) ONE(H5Aget_space)
/* Variables of HDF5 that hold identifiers of immutable types, and the size of each type in bytes. */
#define EACH_TYPE(ONE) \
	ONE(H5T_NATIVE_DOUBLE_g, 8) ONE(H5T_NATIVE_FLOAT_g, 4) ONE(H5T_NATIVE_INT_g, 4) ONE(H5T_NATIVE_LONG_g, 8) ONE(H5T_NATIVE_LLONG_g, 8) \
	ONE(H5T_NATIVE_UINT_g, 4) ONE(H5T_NATIVE_ULONG_g, 8) ONE(H5T_NATIVE_ULLONG_g, 8) ONE(H5T_NATIVE_SHORT_g, 2) ONE(H5T_NATIVE_USHORT_g, 2) \
	ONE(H5T_NATIVE_SCHAR_g, 1) ONE(H5T_NATIVE_UCHAR_g, 1) ONE(H5T_IEEE_F64LE_g, 8) ONE(H5T_IEEE_F32LE_g, 4)
#define HELPER_NUMBER(name, ...) HELPER_##name,
enum { EACH_HELPER(HELPER_NUMBER) EACH_TYPE(HELPER_NUMBER) ALL_HELPERS };
_Static_assert((int)ALL_HELPERS <= (int)HELPERS, "there is room for all");

#define ASK(name, a, b, c) ask(library, HELPER_##name, #name, (word)(a), (word)(b), (word)(c), 0, 0, 0, 0)

enum { NOT_ASKED, NEW_ENOUGH, TOO_OLD };

static int is_new_enough(const struct library *library) {
	u32 major = 0, minor = 0, release = 0, known = __atomic_load_n(&library->caller->state, __ATOMIC_RELAXED);
	if (unlikely(known == NOT_ASKED)) {
		int is_known = ASK(H5get_libversion, &major, &minor, &release) != UNKNOWN;
		known = is_known && (major > 1 || minor >= 10) ? NEW_ENOUGH : TOO_OLD;
		__atomic_store_n(&library->caller->state, known, __ATOMIC_RELAXED);
	}
	return known == NEW_ENOUGH;
}

/* Finds these variables. The program may contain a copy of a variable (a copy relocation), which the library
 * then uses, too; the library's own variable stays empty. */
static __attribute__((noinline)) void look_for_types(const struct library *library) {
#define NAME_OF_TYPE(name, bytes) #name,
	static const char *const names[] = {EACH_TYPE(NAME_OF_TYPE)};
	for (u32 i = 0; i < sizeof(names) / sizeof(*names); i++) {
		void **place = &library->caller->helpers[HELPER_H5T_NATIVE_DOUBLE_g + i];
		const word *own = iodock_helper(library->caller, HELPER_H5T_NATIVE_DOUBLE_g + i, names[i], library->sibling);
		if (own && *own <= 0 && dlsym)
			__atomic_store_n(place, dlsym(RTLD_DEFAULT, names[i]), __ATOMIC_RELAXED);
	}
	__atomic_store_n(&library->caller->has_types, 1, __ATOMIC_RELEASE);
}

/* Returns the size of a type in the list above, 0 for other types. It makes no call of the library, because
 * that takes longer than all other work here. */
static word bytes_of_known(const struct library *library, word type) {
#define BYTES_OF_TYPE(name, bytes) bytes,
	static const u8 bytes[] = {EACH_TYPE(BYTES_OF_TYPE)};
	if (unlikely(!__atomic_load_n(&library->caller->has_types, __ATOMIC_ACQUIRE)))
		look_for_types(library);
	for (u32 i = 0; i < sizeof(bytes); i++) {
		const word *known = __atomic_load_n(&library->caller->helpers[HELPER_H5T_NATIVE_DOUBLE_g + i], __ATOMIC_RELAXED);
		if (known && known != LACKS_IT && *known == type)
			return type > 0 ? bytes[i] : 0;
	}
	return 0;
}

/* Returns the size of one element in memory; UNKNOWN if the element contains pointers. */
static word element_bytes(const struct library *library, word type) {
	word known = bytes_of_known(library, type);
	if (likely(known))
		return known;
	int class = (int)ASK(H5Tget_class, type, 0, 0);
	if (class == VARYING || class == REFERENCE || class < 0)
		return UNKNOWN;
	if (class == TEXTS && (int)ASK(H5Tis_variable_str, type, 0, 0))
		return UNKNOWN;
	if ((class == COMPOUND || class == ARRAY) && ((int)ASK(H5Tdetect_class, type, VARYING, 0) || (int)ASK(H5Tdetect_class, type, TEXTS, 0)))
		return UNKNOWN;
	return ASK(H5Tget_size, type, 0, 0);
}

static word elements(const struct library *library, word dataset, word in_memory, word in_file) {
	if (in_file > IDENTIFIER_LEAST || in_memory > IDENTIFIER_LEAST)
		return ASK(H5Sget_select_npoints, in_file > IDENTIFIER_LEAST ? in_file : in_memory, 0, 0);
	/* It is not known which elements other constants than H5S_ALL select. */
	word space = in_file == ALL && in_memory == ALL ? ASK(H5Dget_space, dataset, 0, 0) : UNKNOWN;
	if (space < 0)
		return UNKNOWN;
	word count = ASK(H5Sget_simple_extent_npoints, space, 0, 0);
	ASK(H5Sclose, space, 0, 0);
	return count;
}

static word moved(const struct library *library, word dataset, word type, word in_memory, word in_file) {
	word count = elements(library, dataset, in_memory, in_file);
	return count == 0 ? 0 : product(count, element_bytes(library, type));
}

static word moved_by_many(const struct library *library, word count, const word *const *given) {
	word all = 0;
	for (word i = 0; i < (int)count; i++) {
		word bytes = moved(library, given[0][i], given[1][i], given[2][i], given[3][i]);
		if (bytes < 0)
			return UNKNOWN;
		all += bytes;
	}
	return all;
}

/* Returns the bytes that a call moves for an attribute, which is always read and written as a whole. */
static word moved_of_attribute(const struct library *library, word attribute, word type) {
	word space = ASK(H5Aget_space, attribute, 0, 0);
	if (space < 0)
		return UNKNOWN;
	word count = ASK(H5Sget_simple_extent_npoints, space, 0, 0);
	ASK(H5Sclose, space, 0, 0);
	return product(count, element_bytes(library, type));
}

/* Writes the name of the object's file, or the name of the object in the file. */
static void put_name(const struct library *library, struct text *to, word object, int is_file) {
	char name[NAME_MOST];
	name[0] = 0;
	word bytes = is_file ? ASK(H5Fget_name, object, name, sizeof(name)) : ASK(H5Iget_name, object, name, sizeof(name));
	if (bytes > 0)
		put_text(to, name);
}

static void put_filters(const struct library *library, struct text *to, word how) {
	int count = (int)ASK(H5Pget_nfilters, how, 0, 0);
	wide_call *filter = (wide_call *)iodock_helper(library->caller, HELPER_H5Pget_filter2, "H5Pget_filter2", library->sibling);
	for (int i = 0; filter && i < count && i < FILTERS_MOST; i++) {
		char name[64] = "";
		u32 flags = 0, configured = 0;
		unsigned long values = 0;
		int number = (int)filter(how, i, (word)&flags, (word)&values, 0, sizeof(name), (word)name, (word)&configured);
		name[sizeof(name) - 1] = 0;
		if (i)
			put_text(to, ",");
		if (name[0])
			put_text(to, name);
		else
			put_number(to, (unsigned long)number);
	}
}

/* Writes the layout, the size of an element, the extent, the chunk's extent and the filters of a data set.
 * The extent of a virtual data set is not queried, because HDF5 would open its source files. */
static void put_dataset(const struct library *library, struct text *to, word dataset) {
	static const char *const layouts[] = {"compact", "contiguous", "chunked", "virtual"};
	unsigned long numbers[DIMENSIONS_MOST];
	word how = ASK(H5Dget_create_plist, dataset, 0, 0), type = ASK(H5Dget_type, dataset, 0, 0);
	int layout = how > 0 ? (int)ASK(H5Pget_layout, how, 0, 0) : -1, count = 0;
	word space = layout == VIRTUAL ? UNKNOWN : ASK(H5Dget_space, dataset, 0, 0);
	if (layout >= 0 && layout < 4)
		put_text(to, layouts[layout]);
	put_between(to);
	if (type > 0) {
		put_number(to, (unsigned long)ASK(H5Tget_size, type, 0, 0));
		ASK(H5Tclose, type, 0, 0);
	}
	put_between(to);
	if (space > 0) {
		count = (int)ASK(H5Sget_simple_extent_ndims, space, 0, 0);
		if (count > 0 && count <= DIMENSIONS_MOST)
			put_numbers(to, numbers, (int)ASK(H5Sget_simple_extent_dims, space, numbers, 0));
		ASK(H5Sclose, space, 0, 0);
	}
	put_between(to);
	if (layout == CHUNKED)
		put_numbers(to, numbers, (int)ASK(H5Pget_chunk, how, DIMENSIONS_MOST, numbers));
	put_between(to);
	if (how > 0) {
		put_filters(library, to, how);
		ASK(H5Pclose, how, 0, 0);
	}
}

/* Combines an identifier with the library, because two HDF5 libraries in a process use the same
 * identifiers. */
static word of_library(const struct library *library, word object) {
	return object ^ (word)iodock_helper(library->caller, HELPER_H5get_libversion, "H5get_libversion", library->sibling) << 12;
}

/* Objects whose name is not queried, because HDF5 would search the whole file for it: objects opened without
 * a name, and objects opened relative to them. If another object takes an entry, the name of the first one is
 * queried. */
static word unnamed[UNNAMED_MOST];

static word *place_of_unnamed(const struct library *library, word object) {
	unsigned long key = (unsigned long)of_library(library, object) * 0x9e3779b97f4a7c15ul;
	return &unnamed[key >> 32 & (UNNAMED_MOST - 1)];
}

static int is_unnamed(const struct library *library, word object) {
	return object > 0 && __atomic_load_n(place_of_unnamed(library, object), __ATOMIC_RELAXED) == of_library(library, object);
}

/* Whether HDF5 knows the object's name without a search. `given` are the arguments of the call that returned
 * the object: its location, and its path from there. Notes objects without a name. */
static int has_name(const struct library *library, u32 kind, word object, const word *given) {
	const char *path = (const char *)given[1];
	if (kind == OBJECT_KIND && (!is_unnamed(library, given[0]) || (path && *path == '/')))
		return 1;
	__atomic_store_n(place_of_unnamed(library, object), of_library(library, object), __ATOMIC_RELAXED);
	return 0;
}

enum { TEXT_MOST = 3 * NAME_MOST };

/* Writes the object's file, and for a data set also its name and its description. */
static void describe(const struct library *library, word object, int is_named, char *place) {
	struct text text = {place, place + TEXT_MOST};
	put_name(library, &text, object, 1);
	if ((int)ASK(H5Iget_type, object, 0, 0) == IS_DATASET) {
		put_between(&text);
		if (is_named)
			put_name(library, &text, object, 0);
		put_between(&text);
		put_dataset(library, &text, object);
	}
	*text.at = 0;
}

/* Sets the facts about a call that has succeeded. Returns the text for its record, 0 for none. */
static const char *note(const struct library *library, u32 kind, const word *given, word *facts, char *place) {
	switch (kind) {
	case FILE_KIND:
		return (const char *)given[0];
	case OBJECT_KIND:
	case UNNAMED_KIND:
		describe(library, facts[HANDLE], has_name(library, kind, facts[HANDLE], given), place);
		return place;
	case VALUE_KIND:
		facts[BYTES] = moved_of_attribute(library, given[0], given[1]);
		return 0;
	case DATA_KIND:
		facts[BYTES] = moved(library, given[0], given[1], given[2], given[3]);
		return 0;
	case MANY_KIND:
		facts[BYTES] = moved_by_many(library, given[0], (const word *const *)&given[1]);
		return 0;
	case WRITES_CHUNK_KIND:
		facts[BYTES] = given[4];
		return 0;
	default:
		return 0;
	}
}

/* Whether a call is recorded. H5Idec_ref is recorded only for files and data sets; the highest bits of an
 * identifier give the kind of its object. */
static int is_worth_it(u32 kind, word object) {
	return kind != RELEASES_KIND || object >> KIND_AT == IS_FILE || object >> KIND_AT == IS_DATASET;
}

static __attribute__((noinline)) word hand_on(u32 number, u32 kind, const char *name, const void *own, const void *address, const word *given) {
	struct caller *caller = caller_at(address, family, &last);
	wide_call *real = real_of(family, address, name, caller ? &caller->real[number - CALLS] : 0, own);
	if (unlikely(!real))
		return -1;
	struct library library = {caller, (const void *)real};
	struct within outer;
	int gives_object = kind == FILE_KIND || kind == OBJECT_KIND || kind == UNNAMED_KIND;
	word facts[FACTS] = {0, UNKNOWN, UNKNOWN, UNKNOWN, 0};
	if (kind == MANY_KIND)
		facts[HANDLE] = (int)given[0] > 0 ? *(const word *)given[1] : UNKNOWN;
	else if (!gives_object)
		facts[HANDLE] = given[0];
	int is_told = caller && is_worth_it(kind, given[0]) && is_new_enough(&library) && begins(number, HDF5_LAYER, &outer);
	word result = real(given[0], given[1], given[2], given[3], given[4], given[5], given[6], given[7]);
	if (!is_told)
		return result;
	int has_failed = gives_object ? result < 0 : (int)result < 0;
	char text[TEXT_MOST + 1];
	const char *told = 0;
	facts[RESULT] = has_failed ? -1 : 0;
	if (!has_failed) {
		if (gives_object)
			facts[HANDLE] = result;
		iodock_within.layer = OWN_CALLS, iodock_within.frame = __builtin_frame_address(0);
		told = note(&library, kind, given, facts, text);
	}
	if (facts[HANDLE] != UNKNOWN)
		facts[HANDLE] = of_library(&library, facts[HANDLE]);
	iodock_within = outer;
	ends(number, facts, told);
	return result;
}

#define TAKE(name, kind) \
	TAKEN word name(word a, word b, word c, word d, word e, word f, word g, word h) { \
		word given[8] = {a, b, c, d, e, f, g, h}; \
		return hand_on(NUMBER_##name, kind, #name, (const void *)name, __builtin_return_address(0), given); \
	}
#define FILE(name) TAKE(name, FILE_KIND)
#define OBJECT(name) TAKE(name, OBJECT_KIND)
#define UNNAMED(name) TAKE(name, UNNAMED_KIND)
#define DATA(name) TAKE(name, DATA_KIND)
#define MANY(name) TAKE(name, MANY_KIND)
#define WRITES_CHUNK(name) TAKE(name, WRITES_CHUNK_KIND)
#define READS_CHUNK(name) TAKE(name, READS_CHUNK_KIND)
#define VALUE(name) TAKE(name, VALUE_KIND)
#define PLAIN(name) TAKE(name, PLAIN_KIND)
#define RELEASES(name) TAKE(name, RELEASES_KIND)

EACH_OF_HDF5(FILE, OBJECT, UNNAMED, DATA, MANY, WRITES_CHUNK, READS_CHUNK, VALUE, PLAIN, RELEASES)
