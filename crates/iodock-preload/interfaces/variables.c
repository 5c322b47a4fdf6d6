/* Notes which variables of NetCDF files were described since their file was opened. If another variable takes
 * the place of one in the table, the recorder gets that description again. */

#include "library.h"

enum { PLACES = 8192, TRIED = 8, FILES = 1024 };
static word told[PLACES];
static u32 opens[FILES];

/* Returns the number of times that a file with this number was opened. File numbers are small, or small
 * numbers in the upper 16 of 32 bits. */
static u32 *opens_of(word file) {
	return &opens[(u32)(file >> 16 ? file >> 16 : file) % FILES];
}

void iodock_variables_begin(word file) {
	__atomic_fetch_add(opens_of(file), 1, __ATOMIC_RELAXED);
}

int iodock_is_new_variable(word library, word file, word variable) {
	unsigned long key = (unsigned long)(library ^ variable);
	key = (key ^ (unsigned long)__atomic_load_n(opens_of(file), __ATOMIC_RELAXED) << 20) * 0x9e3779b97f4a7c15ul;
	key = (key ^ key >> 32) * 0xd6e8feb86659fd93ul | 1;
	unsigned long from = key >> 40;
	for (unsigned long i = 0; i < TRIED; i++) {
		word *place = &told[(from + i) % PLACES], found = __atomic_load_n(place, __ATOMIC_RELAXED);
		if (found == (word)key)
			return 0;
		if (!found) {
			__atomic_store_n(place, (word)key, __ATOMIC_RELAXED);
			return 1;
		}
	}
	__atomic_store_n(&told[from % PLACES], (word)key, __ATOMIC_RELAXED);
	return 1;
}
