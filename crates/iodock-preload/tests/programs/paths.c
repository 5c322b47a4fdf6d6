/* Makes calls with paths of every length and at any place in memory that is followed by unmapped memory.
 * Prints each path with a newline. paths SEED */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define CALLS 20000
#define ROOM 12288
#define MOST 4095

static unsigned long seed;

static unsigned long any(unsigned long below)
{
	seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
	return seed % below;
}

static char *nothing_behind(void)
{
	char *room = mmap(0, ROOM + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (room == MAP_FAILED || mprotect(room + ROOM, 4096, PROT_NONE))
		exit(3);
	return room;
}

/* Writes a random path, usually a short one, which often begins like the previous one. It contains any bytes
 * but NUL and newline. */
static size_t next(char *text)
{
	static const char letters[] = "abcdefgh/\x01\x7f\x80\x81\xff.";
	static size_t last;
	size_t bytes = any(8) ? any(40) : any(4) ? any(300) : any(MOST + 1);
	for (size_t i = any(last + 1); i < bytes; i++)
		text[i] = letters[any(sizeof(letters) - 1)];
	text[bytes] = 0;
	last = bytes;
	return bytes + 1;
}

/* Copies the text to a random place: directly before the unmapped page, across two pages, or anywhere. */
static char *placed(char *room, const char *text, size_t bytes)
{
	size_t at = any(2) ? ROOM - bytes : any(2) ? 4096 - any(bytes < 4096 ? bytes : 4096) : any(ROOM - bytes);
	return memcpy(room + at, text, bytes);
}

/* Makes calls that the kernel refuses after it has looked up the path, and calls that it refuses before it
 * reads the path, whose pointer is then invalid. */
static void refused(FILE *told, char *room)
{
	static const char *paths[] = {"/", "/etc/passwd/x", "/etc/passwd", "/proc/self"};
	static char *const nowhere = (char *)8;
	char text[64];
	for (int i = 0; i < 4; i++) {
		char *path = placed(room, paths[i], strlen(paths[i]) + 1);
		readlink(path, text, sizeof(text)), readlink(path, text, 0), mkdir(path, 0700);
		chdir(i ? path : "/nothing"), access(path, R_OK), unlink(i == 3 ? "/nothing" : i == 2 ? "/" : path);
		fprintf(told, "%s\n%s\n%s\n%s\n%s\n%s\n", path, path, path, i ? path : "/nothing", path,
			i == 3 ? "/nothing" : i == 2 ? "/" : path);
		readlink(nowhere, text, sizeof(text)), readlink(nowhere, text, 0), mkdir(nowhere, 0700), unlink(nowhere);
		readlinkat(77, nowhere, text, 0);
	}
}

int main(int argc, char **argv)
{
	static char text[MOST + 1], other[MOST + 1];
	char *room = nothing_behind(), *room2 = nothing_behind();
	FILE *told = fdopen(dup(1), "w");
	seed = strtoul(argv[1], 0, 10);
	refused(told, room);
	for (int i = 0; i < CALLS; i++) {
		char *path = placed(room, text, next(text)), *path2 = other;
		int kind = any(4);
		if (kind == 3) {
			memcpy(other, text, sizeof(text));
			next(text);
			path2 = placed(room2, text, strlen(text) + 1);
			linkat(AT_FDCWD, path2, 77, path, 0);
			fprintf(told, "%s\n%s\n", path2, path);
			continue;
		}
		if (kind == 0)
			access(path, R_OK);
		else if (kind == 1)
			faccessat(77, path, R_OK, 0);
		else
			readlink(path, other, sizeof(other));
		fprintf(told, "%s\n", path);
	}
	return fclose(told);
}
