/* Finds the names of the files on which calls are counted. */

#include "recorder.h"
#include "light.h"

static inline int is_digit(u8 byte) { return byte >= '0' && byte <= '9'; }

/* Writes the name with each number in it replaced by a star. Returns 0 if the name has no number. */
u64 pattern_of(u8 *to, const u8 *name, u64 bytes) {
	u64 count = 0, stars = 0;
	for (u64 i = 0; i < bytes; i++) {
		if (!is_digit(name[i]))
			to[count++] = name[i];
		else if (!i || !is_digit(name[i - 1]))
			to[count++] = '*', stars++;
	}
	return stars ? count : 0;
}

/* Writes the name's folder, followed by a star. Returns 0 if the name has no folder. */
u64 folder_of(u8 *to, const u8 *name, u64 bytes) {
	while (bytes && name[bytes - 1] != '/')
		bytes--;
	if (!bytes || bytes >= NAME_MOST)
		return 0;
	for (u64 i = 0; i < bytes; i++)
		to[i] = name[i];
	to[bytes] = '*';
	return bytes + 1;
}

void forget_directory(void) { light->directory_bytes = 0; }

/* Writes the working directory's name with its NUL to `to`, and returns its length. A child of vfork has
 * its own working directory. */
static u64 directory_of(const struct state *state, u8 *to) {
	u64 known = state->taken == TAKEN ? light->directory_bytes : 0;
	if (known) {
		put_bytes(to, (const u8 *)light->directory, known + 1);
		return known;
	}
	long bytes = kernel2(SYS_getcwd, to, NAME_MOST);
	if (failed(bytes) || bytes < 2)
		return 0;
	known = (u64)bytes - 1;
	if (state->taken == TAKEN) {
		put_bytes((u8 *)light->directory, to, known + 1);
		set(light->directory_bytes, (u32)known);
	}
	return known;
}

static struct row *row_of_text(struct state *state, const u8 *name) {
	struct path path;
	look_at(&path, name);
	return path.bytes ? row_of_name(state, name, path.bytes, path.hash) : 0;
}

#define DELETED " (deleted)"

/* Shortens a name from /proc. A pipe or socket gets the name of its kind without its number, and a deleted
 * file its name without the mark " (deleted)". */
static u64 trim(u8 *name, u64 bytes) {
	u64 mark = sizeof(DELETED) - 1;
	if (name[0] == '/') {
		if (bytes > mark && is_same(name + bytes - mark, DELETED, mark + 1))
			bytes -= mark;
	} else if (begins(name, "pipe:") || begins(name, "socket:")) {
		for (u64 i = 0; i < bytes; i++)
			if (name[i] == ':')
				bytes = i;
	}
	name[bytes] = 0;
	return bytes;
}

/* Determines the file that the descriptor refers to. */
static NOINLINE struct row *ask_for_descriptor(struct state *state, s64 fd) {
	u8 name[NAME_MOST + 8];
	long bytes = fd < 0 ? -ENOENT : name_of_descriptor(name, NAME_MOST, fd);
	if (failed(bytes) || !bytes || !trim(name, (u64)bytes))
		put_text(name, "descriptor");
	struct row *row = row_of_text(state, name);
	if (!row || fd < 0 || fd >= DESCRIPTORS || state->taken != TAKEN)
		return row;
	struct descriptor *descriptor = &light->descriptors[fd];
	/* With O_APPEND the position is unknown, because a write goes to the end of the file. */
	long flags = name[0] == '/' ? kernel2(SYS_fcntl, fd, F_GETFL) : O_APPEND;
	long position = failed(flags) || flags & O_APPEND ? -ESPIPE : kernel3(SYS_lseek, fd, 0, SEEK_CUR);
	descriptor->position = failed(position) ? POSITION_UNKNOWN : (u64)position;
	set(descriptor->row, row);
	return row;
}

/* Returns the row of a descriptor's file. The table of descriptors is not used in a child of vfork, which has
 * its own descriptors. */
struct row *row_of_descriptor(struct state *state, s64 fd) {
	struct row *row = fd >= 0 && fd < DESCRIPTORS && state->taken == TAKEN ? light->descriptors[fd].row : 0;
	if (!row)
		row = ask_for_descriptor(state, fd);
	return row ? row_for_all(state, row) : 0;
}

/* Writes the name of an open directory with a NUL to `to`, and returns its length. */
static u64 name_of_directory(const struct state *state, s64 fd, u8 *to) {
	const struct row *row = fd >= 0 && fd < DESCRIPTORS && state->taken == TAKEN ? light->descriptors[fd].row : 0;
	if (row && row->kind == ROW_FILE) {
		*put_bytes(to, (u8 *)light->table + light->table->names_at + row->name_at, row->name_bytes) = 0;
		return row->name_bytes;
	}
	long bytes = name_of_descriptor(to, NAME_MOST, fd);
	return failed(bytes) ? 0 : (u64)bytes;
}

/* Returns the row of the file that a call's path names, of the first path if it has two. */
struct row *row_of_path(struct state *state, const struct over *over) {
	const u8 *roles = over->shape->roles;
	u32 at = 0;
	while (at < MOST_ROLES && roles[at] != ROLE_PATH)
		at++;
	s64 directory = at == 1 && roles[0] == ROLE_FD ? (s32)over->arguments[0] : AT_FDCWD;
	const u8 *path = at < MOST_ROLES ? (const u8 *)over->arguments[at] : 0;
	if (!path || !path_was_read(over->number, over->arguments, over->result) || !*path)
		return at == 1 && directory >= 0 ? row_of_descriptor(state, directory) : 0;
	if (*path == '/')
		return row_of_text(state, path);
	u8 name[2 * NAME_MOST + 16];
	u64 bytes = directory == AT_FDCWD ? directory_of(state, name) : name_of_directory(state, directory, name), more;
	while (path[0] == '.' && path[1] == '/')
		path += 2;
	more = length(path, NAME_MOST);
	if (bytes && name[bytes - 1] != '/')
		name[bytes++] = '/';
	*put_bytes(name + bytes, path, more) = 0;
	return row_of_text(state, name);
}
