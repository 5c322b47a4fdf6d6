/* Makes 97 preads of its own file, and prints its mappings. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#ifdef BIG
extern char big[];
#endif

int main(int argc, char **argv)
{
	char text[4096];
	long count;
	int fd = open(argv[0], O_RDONLY);
#ifdef BIG
	big[0] = 1;
#endif
	for (int i = 0; i < 97; i++)
		if (pread(fd, text, 64, 64 * i) != 64)
			return 1;
	fd = open("/proc/self/maps", O_RDONLY);
	while ((count = read(fd, text, sizeof(text))) > 0)
		fwrite(text, 1, (size_t)count, stdout);
	return 0;
}
