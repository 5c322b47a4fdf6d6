/* Counts calls of stdio that only access the buffer, for each stream, because a record would cost more than
 * the call. Several threads and handlers may count at once. A child of fork begins with zeros, because its
 * parent records the earlier counts. */

#include "streams.h"

/* Declared here, and defined in native/interfaces.c, where a comment describes it. */
WEAK void *iodock_memory_wiped_by_fork(unsigned long bytes);

enum { STREAMS = 1024, PROBES = 8, PLACE_SHIFT = 54 };
struct store {
	word streams[STREAMS], descriptors[STREAMS]; /* descriptors: plus one; 0: none, or not known yet */
	struct counted { word calls, bytes; } counted[STREAMS][COUNTED_CALLS];
};
static struct store *store;
static int is_over;

__attribute__((constructor)) static void prepare(void) {
	store = iodock_memory_wiped_by_fork ? iodock_memory_wiped_by_fork(sizeof(struct store)) : 0;
}

static u32 place_of(word stream, u32 probe) {
	return ((u32)((unsigned long)stream * 0x9e3779b97f4a7c15ul >> PLACE_SHIFT) + probe) & (STREAMS - 1);
}

static int is_at(u32 place, word stream) {
	return __atomic_load_n(&store->streams[place], __ATOMIC_RELAXED) == stream;
}

static int takes(u32 place, word stream) {
	word none = 0;
	if (!is_at(place, 0) || !__atomic_compare_exchange_n(&store->streams[place], &none, stream, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		return 0;
	word descriptor = descriptor_of(stream);
	__atomic_store_n(&store->descriptors[place], descriptor == UNKNOWN ? 0 : descriptor + 1, __ATOMIC_RELAXED);
	return 1;
}

static void add(u32 place, u32 kind, word bytes) {
	struct counted *counted = &store->counted[place][kind];
	__atomic_fetch_add(&counted->calls, 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&counted->bytes, bytes, __ATOMIC_RELAXED);
}

int iodock_count(u32 number, word stream, word bytes) {
	if (unlikely(!store || __atomic_load_n(&is_over, __ATOMIC_RELAXED)))
		return 0;
	for (u32 probe = 0; probe < PROBES; probe++)
		if (likely(is_at(place_of(stream, probe), stream))) {
			add(place_of(stream, probe), number - FIRST_OF_STDIO, bytes);
			return 1;
		}
	for (u32 probe = 0; probe < PROBES; probe++)
		if (takes(place_of(stream, probe), stream)) {
			add(place_of(stream, probe), number - FIRST_OF_STDIO, bytes);
			return 1;
		}
	return 0;
}

static void tell(u32 place, word stream) {
	word descriptor = __atomic_load_n(&store->descriptors[place], __ATOMIC_RELAXED);
	descriptor = descriptor ? descriptor - 1 : UNKNOWN;
	for (u32 kind = 0; kind < COUNTED_CALLS; kind++) {
		struct counted *counted = &store->counted[place][kind];
		if (likely(!__atomic_load_n(&counted->calls, __ATOMIC_RELAXED) && !__atomic_load_n(&counted->bytes, __ATOMIC_RELAXED)))
			continue;
		word calls = __atomic_exchange_n(&counted->calls, 0, __ATOMIC_RELAXED), bytes = __atomic_exchange_n(&counted->bytes, 0, __ATOMIC_RELAXED);
		word facts[FACTS_OF_STREAM] = {0, stream, bytes, UNKNOWN, UNKNOWN, UNKNOWN, descriptor, calls};
		iodock_interface(COUNTS, FIRST_OF_STDIO + kind, facts, FACTS_OF_STREAM, 0);
	}
}

/* Records a stream's counts. All its places are searched, because two threads may have given one stream two
 * places. */
void iodock_tell_counts(word stream, int is_closed) {
	for (u32 probe = 0; store && probe < PROBES; probe++) {
		u32 place = place_of(stream, probe);
		if (likely(!is_at(place, stream)))
			continue;
		tell(place, stream);
		if (is_closed) {
			__atomic_store_n(&store->descriptors[place], 0, __ATOMIC_RELAXED);
			__atomic_store_n(&store->streams[place], 0, __ATOMIC_RELEASE);
		}
	}
}

void iodock_tell_all_counts(void) {
	for (u32 place = 0; store && place < STREAMS; place++) {
		word stream = __atomic_load_n(&store->streams[place], __ATOMIC_RELAXED);
		if (unlikely(stream))
			tell(place, stream);
	}
}

/* Records all counts when the process ends. Later calls are recorded one by one. */
__attribute__((destructor)) static void end(void) {
	__atomic_store_n(&is_over, 1, __ATOMIC_RELAXED);
	if (iodock_interface)
		iodock_tell_all_counts();
}
