/* Finds the library to which an intercepted call must be passed on. A process may contain several copies of a
 * library, each loaded for one module only (RTLD_LOCAL): Python wheels bring their own, under mangled names.
 * So each calling module gets the function that the dynamic linker would have given it without this
 * library. */

#include "interfaces.h"

#define RTLD_NEXT ((void *)-1l)
enum { RTLD_LAZY = 1, RTLD_NOLOAD = 4, IS_LOADED = 1, IS_DYNAMIC = 2, CALLERS = 256, PATH_MOST = 4096 };
#define VERSIONS_DEFINED 0x6ffffffc

WEAK void *dlopen(const char *path, int how);
WEAK int dlclose(void *library);
/* Structures of <link.h> and <elf.h>, with the fields that are used here. */
struct segment { u32 kind, flags; unsigned long offset, at, physical, file_bytes, bytes, alignment; };
struct loaded { unsigned long at; const char *path; const struct segment *segments; unsigned short count; };
struct entry { long tag; unsigned long value; };
WEAK int dl_iterate_phdr(int (*each)(struct loaded *, unsigned long, void *), void *given);

/* A module to search for: the one that contains `address`, or, with `family`, the library whose file name
 * begins with that, after `before` others. copy_module() fills the other fields. */
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

/* Finds the module that contains the address. Returns 0 if there is none. The path of the program itself is
 * empty. */
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

/* Looks up a function in a loaded library. The library then stays loaded, because callers cache the
 * function. */
static void *find_in(const char *path, const char *name) {
	void *opened = *path && dlopen && dlsym ? dlopen(path, RTLD_LAZY | RTLD_NOLOAD) : 0;
	return opened ? dlsym(opened, name) : 0;
}

/* Looks up a function in a module and its dependencies. The module can still be unloaded afterwards; the
 * library that has the function stays loaded. */
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

/* Finds the function for the module that contains `address`. Libraries loaded globally come first. But if two
 * global libraries of one family have the function (Debian's HDF5 with MPI and without) and use symbol
 * versions, the module gets the library that it needs itself. */
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

/* Finds or creates the entry of a calling module. Returns 0 if there are too many, or the address is in no
 * module; its calls are then passed on, but not recorded. */
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

/* Returns a function of the library that contains the function `sibling`, 0 if it has none of that name. */
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
