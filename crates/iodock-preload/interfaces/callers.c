/* Which library a call is bound to. Several libraries of one kind may be in a process, each loaded for one module alone: wheels of Python bring
 * their own, under mangled names (RTLD_LOCAL). So each module that makes a call gets the function that the dynamic linker would have given it. */

#include "interfaces.h"

#define RTLD_NEXT ((void *)-1l)
enum { RTLD_LAZY = 1, RTLD_NOLOAD = 4, IS_LOADED = 1, IS_DYNAMIC = 2, CALLERS = 256, PATH_MOST = 4096 };
#define VERSIONS_DEFINED 0x6ffffffc

WEAK void *dlopen(const char *path, int how);
WEAK int dlclose(void *library);
/* Of <link.h> and <elf.h>. */
struct segment { u32 kind, flags; unsigned long offset, at, physical, file_bytes, bytes, alignment; };
struct loaded { unsigned long at; const char *path; const struct segment *segments; unsigned short count; };
struct entry { long tag; unsigned long value; };
WEAK int dl_iterate_phdr(int (*each)(struct loaded *, unsigned long, void *), void *given);

/* A module: that with an address, or the library of a family that `before` others come before. */
struct module {
	unsigned long address, from, to;
	const char *family;
	u32 before, is_versioned;
	char path[PATH_MOST];
};

static struct caller callers[CALLERS];
static u32 callers_taken;

static int begins_with(const char *text, const char *beginning) {
	while (*beginning && *text == *beginning)
		text++, beginning++;
	return !*beginning;
}

static const char *file_name(const char *path) {
	const char *name = path;
	for (; *path; path++)
		if (*path == '/')
			name = path + 1;
	return name;
}

static int is_within(const struct loaded *library, struct module *module) {
	unsigned long from = -1ul, to = 0;
	const struct entry *entry = 0;
	for (u32 i = 0; i < library->count; i++) {
		const struct segment *segment = &library->segments[i];
		unsigned long at = library->at + segment->at;
		if (segment->kind == IS_DYNAMIC)
			entry = (const struct entry *)at;
		if (segment->kind != IS_LOADED)
			continue;
		from = at < from ? at : from;
		to = at + segment->bytes > to ? at + segment->bytes : to;
	}
	if (module->address < from || module->address >= to)
		return 0;
	module->from = from;
	module->to = to;
	for (; entry && entry->tag; entry++)
		module->is_versioned |= entry->tag == VERSIONS_DEFINED;
	return 1;
}

static int copy_module(struct loaded *library, unsigned long bytes, void *given) {
	struct module *module = given;
	u32 at = 0;
	(void)bytes;
	if (!library->path)
		return 0;
	int is_it = module->family ? begins_with(file_name(library->path), module->family) && !module->before-- : is_within(library, module);
	if (!is_it)
		return 0;
	for (; library->path[at] && at < PATH_MOST - 1; at++)
		module->path[at] = library->path[at];
	module->path[at] = 0;
	return 1;
}

/* The program itself has no path. */
static int find_module(struct module *module, const void *address) {
	module->address = (unsigned long)address;
	module->from = module->to = 0;
	module->family = 0;
	module->is_versioned = 0;
	module->path[0] = 0;
	return dl_iterate_phdr && dl_iterate_phdr(copy_module, module);
}

struct range iodock_range_of(const void *address) {
	struct module module;
	return find_module(&module, address) ? (struct range){module.from, module.to} : (struct range){0, 0};
}

/* The library stays loaded from now on, as its functions are remembered. */
static void *find_in(const char *path, const char *name) {
	void *opened = *path && dlopen && dlsym ? dlopen(path, RTLD_LAZY | RTLD_NOLOAD) : 0;
	return opened ? dlsym(opened, name) : 0;
}

/* A module that calls may be unloaded as without us; the library that it is bound to stays. */
static void *find_from(const char *path, const char *name, const void *own) {
	void *opened = *path && dlopen && dlsym && dlclose ? dlopen(path, RTLD_LAZY | RTLD_NOLOAD) : 0, *found = opened ? dlsym(opened, name) : 0;
	struct module module;
	if (found && found != own && find_module(&module, found))
		find_in(module.path, name);
	if (opened)
		dlclose(opened);
	return found == own ? 0 : found;
}

static void *find_in_family(const char *family, const char *name, const void *own) {
	void *found = 0;
	for (u32 before = 0; !found && dl_iterate_phdr; before++) {
		struct module module;
		module.family = family;
		module.before = before;
		if (!dl_iterate_phdr(copy_module, &module))
			break;
		found = find_in(module.path, name);
		found = found == own ? 0 : found;
	}
	return found;
}

/* Global libraries come before those of the module alone. Of two kinds that are both global, as Debian's with MPI and without, versions of names say
 * which one it is: that which the module itself needs. */
static void *find_for(const char *family, const void *address, const char *name, const void *own) {
	struct module module, other;
	void *next = dlsym ? dlsym(RTLD_NEXT, name) : 0, *needed = 0;
	next = next == own ? 0 : next;
	if (find_module(&module, address))
		needed = find_from(module.path, name, own);
	if (next && needed && next != needed && find_module(&module, needed) && module.is_versioned && find_module(&other, next) &&
	    begins_with(file_name(other.path), family))
		return needed;
	return next ? next : needed ? needed : find_in_family(family, name, own);
}

/* 0: there are too many of them, or it is none; such calls are handed on, and not told. */
__attribute__((noinline)) struct caller *iodock_look_for_caller(const void *address, const char *family) {
	u32 count = __atomic_load_n(&callers_taken, __ATOMIC_RELAXED);
	for (u32 i = 0; i < count && i < CALLERS; i++) {
		struct caller *caller = &callers[i];
		unsigned long to = __atomic_load_n(&caller->to, __ATOMIC_ACQUIRE), at = (unsigned long)address;
		if (at < to && at >= caller->from && caller->family == family)
			return caller;
	}
	struct module module;
	u32 place = count < CALLERS && find_module(&module, address) ? __atomic_fetch_add(&callers_taken, 1, __ATOMIC_RELAXED) : CALLERS;
	if (place >= CALLERS)
		return 0;
	callers[place].from = module.from;
	callers[place].family = family;
	__atomic_store_n(&callers[place].to, module.to, __ATOMIC_RELEASE);
	return &callers[place];
}

__attribute__((noinline)) void *iodock_bind(const char *family, const void *address, const char *name, void **place, const void *own) {
	void *found = find_for(family, address, name, own);
	if (found && place)
		__atomic_store_n(place, found, __ATOMIC_RELAXED);
	return found;
}

/* A function of the library that has `sibling`; 0: it has none of that name, and what it would say is unknown. */
void *iodock_helper(struct caller *caller, u32 number, const char *name, const void *sibling) {
	void *found = __atomic_load_n(&caller->helpers[number], __ATOMIC_RELAXED);
	struct module module;
	if (likely(found))
		return likely(found != LACKS_IT) ? found : 0;
	int is_there = find_module(&module, sibling);
	if (is_there)
		found = find_in(module.path, name);
	if (!found && dlsym)
		found = dlsym(RTLD_NEXT, name);
	__atomic_store_n(&caller->helpers[number], is_there && !found ? LACKS_IT : found, __ATOMIC_RELAXED);
	return found;
}
