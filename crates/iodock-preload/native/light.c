/* Creates a process's table of counters, and its rows. Threads take rows by compare and exchange, without
 * locks and without allocation. If no row is left, several files are counted together. */

#include "recorder.h"
#include "light.h"

struct light *light;

_Static_assert(sizeof(struct row) % 64 == 0, "lines");

#define LIGHT_BYTES ((sizeof(struct light) + 4095) & ~4095ul)
#define ROUND(bytes) (((bytes) + 4095) & ~4095ul)
/* Size of the pages that are created at a time, in bytes. */
#define GROW_BYTES 16384ul

static u8 *map_table(u64 at, u64 bytes) {
	long file = session_file, new;
	if (failed(file) && !descriptors) {
		u8 *memory = map_part(0, at, bytes);
		if (memory)
			return memory;
	}
	if (failed(session_file))
		file = kernel3(SYS_open, session->session, O_RDWR | O_CLOEXEC, 0);
	if (failed(file))
		return 0;
	new = kernel(SYS_mmap, 0, (long)bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, (long)at);
	if (failed(session_file))
		kernel1(SYS_close, file);
	return failed(new) ? 0 : (u8 *)new;
}

/* Creates pages of an area up to `end`, because the first access to a page for which the file system has no
 * space would raise SIGBUS. Returns 0 if there is no space. */
static int make_pages(u8 *area, u32 *ready, u64 end, u64 most) {
	u32 from = *(volatile u32 *)ready;
	if (likely(end <= from))
		return 1;
	u64 to = ROUND(end) + (from ? GROW_BYTES : 0);
	to = to < most ? to : most;
	if (!populate(area + from, area + to))
		return 0;
	while (from < to && !__atomic_compare_exchange_n(ready, &from, (u32)to, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
	return 1;
}

/* Returns the number of slots in the index: at least twice the number of rows that fit, up to SLOTS_MOST. */
static u64 slots_of(u64 bytes) {
	u64 slots = SLOTS_LEAST;
	while (slots < SLOTS_MOST && slots * sizeof(struct row) / 2 < bytes)
		slots *= 2;
	return slots;
}

/* Divides the table's space: an eighth for the bits of is_seen(), an eighth for names, and the rest for the
 * index, first accesses and rows. */
static void lay_out(struct table *table, u64 bytes) {
	u64 accesses = session->first_accesses, eighth = bytes / 8 & ~4095ul, slots = slots_of(bytes);
	table->index_at = 4096;
	table->slots = (u32)slots;
	table->accesses_at = table->index_at + slots * sizeof(u16);
	table->rows_at = table->accesses_at + ROUND(accesses * sizeof(struct access));
	table->seen_at = (bytes & ~4095ul) - eighth;
	table->names_at = table->seen_at - eighth;
	u64 rows = (table->names_at - table->rows_at) / sizeof(struct row);
	table->rows_most = (u32)(rows < slots / 2 ? rows : slots / 2);
	table->names_most = (u32)eighth;
	table->seen_bits = (u32)(8 * eighth);
	table->accesses_most = (u32)accesses;
}

/* Takes `count` units of a limited resource. Returns the number of units taken before, or ~0 if fewer than
 * `count` of `most` are left. */
static u32 take(u32 *used, u32 count, u32 most) {
	u32 have = __atomic_load_n(used, __ATOMIC_RELAXED);
	do
		if (have > most || count > most - have)
			return ~0u;
	while (!__atomic_compare_exchange_n(used, &have, have + count, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
	return have;
}

/* Returns how much of a resource a kind of row may use. Rows of single files leave a quarter for rows that
 * count several files; rows of patterns leave an eighth. */
static u32 limit_of(u32 most, enum row_kind kind) {
	return kind == ROW_FILE ? most - most / 4 : kind == ROW_PATTERN ? most - most / 8 : most;
}

/* Creates a row that is not in the index yet. Returns its number plus one, or 0 if none is left. */
static u32 new_row(struct table *table, const u8 *name, u64 bytes, u64 key, u32 owner, enum row_kind kind) {
	u32 name_at = take(&table->names_used, (u32)bytes, limit_of(table->names_most, kind)), number;
	u8 *names = (u8 *)table + table->names_at;
	if (name_at == ~0u || !make_pages(names, &table->names_ready, name_at + bytes, table->names_most))
		return 0;
	number = take(&table->rows_used, 1, limit_of(table->rows_most, kind));
	if (number == ~0u || !make_pages((u8 *)rows_of(table), &table->rows_ready, (number + 1) * sizeof(struct row),
					table->names_at - table->rows_at))
		return 0;
	struct row *row = &rows_of(table)[number];
	for (u64 i = 0; i < bytes; i++)
		names[name_at + i] = name[i];
	row->name_at = name_at;
	row->name_bytes = (u32)bytes;
	row->owner = owner;
	row->kind = kind;
	set(row->key, key);
	return number + 1;
}

static struct table *new_table(void) {
	u64 number = __atomic_fetch_add(&session->tables_used, 1, __ATOMIC_RELAXED), bytes = session->table_bytes;
	u8 *memory = number < session->tables_most ? map_table(session->tables_at + number * bytes, bytes) : 0;
	struct table *table = (struct table *)memory;
	if (!memory || !populate(memory, memory + 4096 + slots_of(bytes) * sizeof(u16)))
		return 0;
	lay_out(table, bytes);
	if (table->accesses_most && !populate(memory + table->accesses_at, memory + table->rows_at))
		return 0;
	table->begun = ticks();
	table->pid = (u32)kernel0(SYS_getpid);
	/* This row counts everything that has no other row. */
	if (!new_row(table, (const u8 *)"*", 1, 1, 0, ROW_REST))
		return 0;
	set(table->magic, TABLE_MAGIC);
	table_span = (struct span){(u64)memory, (u64)memory + bytes};
	return table;
}

/* Returns the table of this process, or 0 if it can't have one. A child of fork creates its own at its first
 * call. */
struct table *table_of(void) {
	if (likely(light->table != 0))
		return light->table;
	if (light->is_failed || __atomic_exchange_n(&light->is_being_made, 1, __ATOMIC_ACQUIRE))
		return 0;
	struct table *table = new_table();
	if (!table) {
		light->is_failed = 1;
		__atomic_fetch_add(&session->lost_streams, 1, __ATOMIC_RELAXED);
	}
	set(light->table, table);
	return table;
}

/* Prepares counting when the library is loaded. */
int begin_counting(void) {
	long at = kernel(SYS_mmap, 0, LIGHT_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (failed(at) || failed(kernel3(SYS_madvise, at, LIGHT_BYTES, MADV_WIPEONFORK)))
		return 0;
	light = (struct light *)at;
	light_span = (struct span){(u64)at, (u64)at + LIGHT_BYTES};
	return table_of() != 0;
}

/* Finds or creates a row of that name to which this thread may add. Returns its number plus one, 0 if no row
 * is left. */
static u32 find_row(struct table *table, const u8 *name, u64 bytes, u64 key, u32 me, enum row_kind kind) {
	u16 *index = (u16 *)((u8 *)table + table->index_at);
	u32 new = 0, has_other = 0;
	u64 at = key >> 20;
	for (u32 tries = 0; tries < table->slots; tries++, at++) {
		u16 *slot = &index[at & (table->slots - 1)], there = __atomic_load_n(slot, __ATOMIC_ACQUIRE);
		if (!there) {
			if (!new && !(new = new_row(table, name, bytes, key, has_other ? 0 : me, kind)))
				return 0;
			if (__atomic_compare_exchange_n(slot, &there, (u16)new, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
				return new;
		}
		const struct row *row = &rows_of(table)[there - 1];
		if (row->key != key)
			continue;
		if (!row->owner || row->owner == me)
			return there;
		/* Another thread has a row of this name. If a row was created here, it becomes the row for all threads
		 * (owner 0). If such a row exists already, the new one stays without counts. */
		has_other = 1;
		if (new)
			rows_of(table)[new - 1].owner = 0;
	}
	return 0;
}

/* Returns the row itself if this thread may add to it, else the row of the same name to which all threads
 * add. */
struct row *row_for_all(struct state *state, struct row *row) {
	struct table *table = light->table;
	if (!row->owner || row->owner == state->number)
		return row;
	if (!row->twin) {
		const u8 *name = (u8 *)table + table->names_at + row->name_at;
		u32 found = find_row(table, name, row->name_bytes, row->key, state->number, (enum row_kind)row->kind);
		/* If there is no such row, the calls are counted in the first row ("*"), to which all threads may
		 * add. */
		row->twin = (u16)(found ? found : 1);
	}
	return &rows_of(table)[row->twin - 1];
}

/* Whether a file of that name was probably counted before. Names that share a bit can't be distinguished. */
static int is_seen(struct table *table, u64 hash) {
	u8 *bits = (u8 *)table + table->seen_at;
	if (!make_pages(bits, &table->seen_ready, table->seen_bits / 8, table->seen_bits / 8))
		return 1;
	u64 bit = (hash * 0x9e3779b97f4a7c15ul >> 20) % table->seen_bits;
	u8 mask = (u8)(1 << bit % 8);
	return (__atomic_fetch_or(&bits[bit / 8], mask, __ATOMIC_RELAXED) & mask) != 0;
}

static u64 hash_of(const u8 *name, u64 bytes, enum row_kind kind) {
	u64 hash = HASH_BEGIN + kind;
	for (u64 i = 0; i < bytes; i++)
		hash = mix(hash, name[i]);
	return hash | 1;
}

/* Returns a row that counts several files: those with the same pattern, those in the same folder, or all. */
static NOINLINE struct row *row_of_many(struct state *state, const u8 *name, u64 bytes, u64 hash) {
	struct table *table = light->table;
	u8 text[NAME_MOST];
	u64 count = pattern_of(text, name, bytes);
	u32 found = count ? find_row(table, text, count, hash_of(text, count, ROW_PATTERN), state->number, ROW_PATTERN) : 0;
	if (!found && (count = folder_of(text, name, bytes)) != 0)
		found = find_row(table, text, count, hash_of(text, count, ROW_FOLDER), state->number, ROW_FOLDER);
	struct row *row = &rows_of(table)[found ? found - 1 : 0];
	if (!is_seen(table, hash)) {
		__atomic_fetch_add(&row->files, 1, __ATOMIC_RELAXED);
		__atomic_fetch_add(&table->folded, 1, __ATOMIC_RELAXED);
	}
	return row;
}

/* Returns the row in which this thread counts calls on a file of that name. */
struct row *row_of_name(struct state *state, const u8 *name, u64 bytes, u64 hash) {
	struct table *table = light->table;
	bytes = bytes < NAME_MOST ? bytes : NAME_MOST;
	u32 found = find_row(table, name, bytes, hash, state->number, ROW_FILE);
	return found ? &rows_of(table)[found - 1] : row_of_many(state, name, bytes, hash);
}
