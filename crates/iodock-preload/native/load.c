/* When the library is loaded: maps the session, and patches the modules whose sites it knows. A part of
 * record.c, kept apart for reading. */

#define AT_NULL 0
#define AT_PHDR 3
#define AT_PHNUM 5
#define AT_EXECFN 31
#define PT_DYNAMIC 2
#define PT_PHDR 6
#define DT_DEBUG 21
#define NT_GNU_BUILD_ID 3

struct link {
	u64 load;
	const char *name;
	u64 dynamic;
	struct link *next;
};

static const char *variable(char **environment, const char *name)
{
	for (; *environment; environment++) {
		u64 i = 0;
		while (name[i] && (*environment)[i] == name[i])
			i++;
		if (!name[i] && (*environment)[i] == '=')
			return *environment + i + 1;
	}
	return 0;
}

/* The dynamic linker's list of what is loaded, as debuggers find it. */
static struct link *modules(char **environment)
{
	while (*environment)
		environment++;
	u64 segments_at = 0, count = 0, load = 0;
	for (u64 *pair = (u64 *)(environment + 1); pair[0] != AT_NULL; pair += 2) {
		if (pair[0] == AT_PHDR)
			segments_at = pair[1];
		if (pair[0] == AT_PHNUM)
			count = pair[1];
	}
	struct segment *segment = (struct segment *)segments_at;
	u64 *dynamic = 0;
	for (u64 i = 0; i < count; i++)
		if (segment[i].type == PT_PHDR)
			load = segments_at - segment[i].address;
	for (u64 i = 0; i < count; i++)
		if (segment[i].type == PT_DYNAMIC)
			dynamic = (u64 *)(load + segment[i].address);
	for (; dynamic && dynamic[0]; dynamic += 2)
		if (dynamic[0] == DT_DEBUG && dynamic[1])
			return *(struct link **)(dynamic[1] + 8);
	return 0;
}

/* As it was given to exec; where that depends on a working directory, as the kernel tells it. */
static const char *program_name(char **environment, char *room, u64 bytes)
{
	while (*environment)
		environment++;
	u64 *pair = (u64 *)(environment + 1);
	while (pair[0] != AT_NULL && pair[0] != AT_EXECFN)
		pair += 2;
	const char *name = pair[0] == AT_EXECFN ? (const char *)pair[1] : "";
	if (name[0] == '/')
		return name;
	long count = kernel3(SYS_readlink, "/proc/self/exe", room, bytes - 1);
	if (failed(count))
		return name;
	room[count] = 0;
	return room;
}

/* Writes where the build id is and returns its length, 0 for none. */
static u32 build_id(const struct elf *elf, const u8 **found)
{
	const struct segment *segment = (const struct segment *)((const u8 *)elf + elf->segments_at);
	for (u32 i = 0; i < elf->segments; i++) {
		if (segment[i].type != PT_NOTE)
			continue;
		const u8 *at = (const u8 *)elf + segment[i].address;
		const u8 *end = at + segment[i].memory_bytes;
		while (at + 16 <= end) {
			const u32 *note = (const u32 *)at;
			if (note[2] == NT_GNU_BUILD_ID && note[0] == 4) {
				*found = at + 16;
				return note[1];
			}
			at += 12 + ((note[0] + 3) & ~3u) + ((note[1] + 3) & ~3u);
		}
	}
	return 0;
}

static const struct module *sites_of(const u8 *id, u32 bytes)
{
	const u8 *at = (const u8 *)session + session->sites_at;
	const u8 *end = at + session->sites_bytes;
	while (at + sizeof(struct module) <= end) {
		const struct module *module = (const struct module *)at;
		u32 same = module->build_id_bytes == bytes;
		for (u32 i = 0; same && i < bytes; i++)
			same = module->build_id[i] == id[i];
		if (same)
			return module;
		at += module->bytes;
	}
	return 0;
}

static u8 *put_relative(u8 *at, const void *target)
{
	return put_fixed(at, (u64)((const u8 *)target - (at + 4)), 4);
}

static u8 *put_jump(u8 *at, const void *target)
{
	*at++ = 0xe9;
	return put_relative(at, target);
}

/* lea RETURN(%rip),%rcx; lea AFTER(%rip),%r11; jmp STUB. RETURN is `skip` bytes behind all this. */
static u8 *put_detour(u8 *at, const u8 *after, const void *stub)
{
	at = put_fixed(at, 0x0d8d48, 3);
	at = put_relative(at, at + 4 + 12);
	at = put_fixed(at, 0x1d8d4c, 3);
	at = put_relative(at, after);
	return put_jump(at, stub);
}

static u8 *put_trampoline(u8 *at, const u8 *load, const struct site *site)
{
	const u8 *after = load + site->after;
	at = put_bytes(at, site->code, site->before_bytes);
	if (site->kind == SITE_PLAIN) {
		at = put_detour(at, after, (const void *)iodock_plain);
	} else {
		at = put_detour(at, after, (const void *)iodock_before);
		at = put_fixed(at, 0x050f, 2);
		at = put_detour(at, after, (const void *)iodock_after);
	}
	at = put_bytes(at, site->code + site->before_bytes, site->behind_bytes);
	return put_jump(at, load + site->patch + site->patch_bytes);
}

#define TRAMPOLINE_MOST 96
/* Those of glibc's sites. */
#define TRAMPOLINES_USUAL 16384
static u8 *free_trampoline;

static int is_near(const u8 *address)
{
	s64 distance = address - iodock_trampolines;
	return distance > -0x7ff00000l && distance < 0x7ff00000l;
}

/* The pages of our own that patching makes, a run of neighbours at a time: a fault for each costs more. */
static void populate_sites(u8 *load, const struct site *sites, u32 count)
{
	u64 from = 0, to = 0;
	for (u32 i = 0; i <= count; i++) {
		u64 first = i < count ? (u64)(load + sites[i].patch) & ~4095ul : ~0ul;
		if (first > to) {
			if (to)
				kernel3(SYS_madvise, from, to - from, MADV_POPULATE_WRITE);
			from = first;
		}
		if (i < count)
			to = ((u64)(load + sites[i].patch + 4) & ~4095ul) + 4096;
	}
}

static u32 patch(u8 *load, const struct module *module)
{
	const struct site *sites = (const struct site *)(module + 1);
	u32 count = module->sites;
	if (!count || !is_near(load))
		return 0;
	u8 *first = (u8 *)((u64)(load + sites[0].patch) & ~4095ul);
	u64 bytes = (u64)(load + sites[count - 1].patch + 5 - first + 4095) & ~4095ul;
	if (failed(kernel3(SYS_mprotect, first, bytes, PROT_READ | PROT_WRITE)))
		return 0;
	populate_sites(load, sites, count);
	u32 done = 0;
	for (; done < count && free_trampoline + TRAMPOLINE_MOST < iodock_trampolines_end; done++) {
		u8 *trampoline = free_trampoline;
		free_trampoline = put_trampoline(trampoline, load, &sites[done]);
		put_jump(load + sites[done].patch, trampoline);
	}
	kernel3(SYS_mprotect, first, bytes, PROT_READ | PROT_EXEC);
	__atomic_fetch_add(&session->sites_patched, done, __ATOMIC_RELAXED);
	__atomic_fetch_add(&session->sites_left, module->left + count - done, __ATOMIC_RELAXED);
	return done;
}

/* So that the recorder can look whether it makes calls of its own. (Where all places are taken it can't.) */
static void note_other(const char *name)
{
	u64 bytes = length((const u8 *)name, MODULE_NAME + 1);
	if (name[0] != '/' || bytes > MODULE_NAME)
		return;
	u64 hash = hash_of((const u8 *)name, bytes);
	for (u32 i = 0; i < MODULES; i++) {
		struct other *other = &session->others[((hash >> 1) + i) % MODULES];
		u64 there = 0;
		if (__atomic_compare_exchange_n(&other->hash, &there, hash, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
			put_bytes((u8 *)other->name, (const u8 *)name, bytes);
			return;
		}
		if (there == hash)
			return;
	}
}

/* How many sites there are now. */
static u32 patch_all(struct link *link, const char *program)
{
	u32 done = 0;
	u64 bytes = (u64)(iodock_trampolines_end - iodock_trampolines);
	if (failed(kernel3(SYS_mprotect, iodock_trampolines, bytes, PROT_READ | PROT_WRITE)))
		return 0;
	free_trampoline = iodock_trampolines;
	kernel3(SYS_madvise, iodock_trampolines, TRAMPOLINES_USUAL, MADV_POPULATE_WRITE);
	for (; link; link = link->next) {
		/* The main program's entry has load 0 where it is not position independent. */
		const struct elf *elf = (const struct elf *)link->load;
		const u8 *id;
		const struct module *module;
		if (!elf || *(const u32 *)elf != 0x464c457f)
			continue;
		u32 id_bytes = build_id(elf, &id);
		if (id_bytes && (module = sites_of(id, id_bytes)) != 0)
			done += patch((u8 *)link->load, module);
		else
			note_other(link->name[0] ? link->name : program);
	}
	kernel3(SYS_mprotect, iodock_trampolines, bytes, PROT_READ | PROT_EXEC);
	return done;
}

#define HEAD_MOST (1ul << 20)

static int map_session(const char *path)
{
	long fd = kernel3(SYS_open, path, O_RDWR | O_CLOEXEC, 0);
	if (failed(fd))
		return 0;
	/* Only what stands before the chunks. Each of these has its time: who maps all of the file takes 64 GiB of the address space, which
	 * may be limited at any moment, or locked. */
	long at = kernel(SYS_mmap, 0, HEAD_MOST, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (!failed(at))
		session = (struct header *)at;
	kernel1(SYS_close, fd);
	if (!session || session->magic != SESSION_MAGIC || session->version != SESSION_VERSION ||
	    session->time_shift != TIME_SHIFT || session->closed || session->chunks_at > HEAD_MOST)
		return 0;
	if (session->chunks_at < HEAD_MOST)
		kernel2(SYS_munmap, at + (long)session->chunks_at, HEAD_MOST - session->chunks_at);
	return block(0) != 0;
}

/* MPI launchers and batch systems tell a process its rank in its environment. */
static int names_rank(const char *pair)
{
	for (; *pair && *pair != '='; pair++)
		if ((pair[0] == 'R' && pair[1] == 'A' && pair[2] == 'N' && pair[3] == 'K') ||
		    (pair[0] == 'P' && pair[1] == 'R' && pair[2] == 'O' && pair[3] == 'C' && pair[4] == 'I'))
			return 1;
	return 0;
}

/* Appends the texts, each with its NUL, as far as there is room. */
static u8 *put_texts(u8 *at, char **texts, u64 most, int (*wanted)(const char *))
{
	u8 *head = at;
	at += 2;
	for (; *texts; texts++) {
		u64 count = length((const u8 *)*texts, most) + 1;
		if (wanted && !wanted(*texts))
			continue;
		if ((u64)(at - head) + count > most)
			break;
		at = put_bytes(at, (const u8 *)*texts, count);
	}
	put_fixed(head, (u64)(at - head - 2), 2);
	return at;
}

#define DIRECTORY_LIMIT 4096

/* What there is to know of the process when its program starts. */
static void write_process(char **arguments, char **environment, u32 traced)
{
	u64 now = ticks() >> TIME_SHIFT;
	struct state *state = mine(now);
	if (!state || !room(state, 0, PLAIN_LIMIT + DIRECTORY_LIMIT + TEXT_LIMIT + 1024, now))
		return;
	u8 *at = state->streams[0].at;
	*at++ = CODE_CONTROL;
	*at++ = CONTROL_PROCESS;
	at = put_fixed(at, state->tid, 4);
	at = put_fixed(at, state->pid, 4);
	at = put_fixed(at, now, 8);
	at = put_fixed(at, (u64)kernel0(SYS_getppid), 4);
	at = put_fixed(at, traced, 1);
	long bytes = kernel2(SYS_getcwd, at + 2, DIRECTORY_LIMIT);
	/* With its NUL. */
	bytes = failed(bytes) ? 0 : bytes - 1;
	at = put_fixed(at, (u64)bytes, 2) + bytes;
	at = put_texts(at, arguments, TEXT_LIMIT, 0);
	at = put_texts(at, environment, 1024, names_rank);
	state->streams[0].last_end = now;
	commit(&state->streams[0], at);
}

__attribute__((constructor)) static void loaded(int count, char **arguments, char **environment)
{
	(void)count;
	const char *path = variable(environment, "IODOCK_SESSION");
	if (!path)
		return;
	long answer = mark(MARK_LOADING);
	if (answer == STAY_OFF)
		return;
	char room[MODULE_NAME + 1];
	/* Where no site is known (another libc) nothing would be seen. */
	u32 works = map_session(path) && patch_all(modules(environment), program_name(environment, room, sizeof(room)));
	if (answer == 0)
		mark(works ? MARK_LOADED : MARK_FAILED);
	if (works)
		write_process(arguments, environment, answer == 0);
	else
		session = 0;
}
