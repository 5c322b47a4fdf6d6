/* Does a known amount of I/O: known_io READ WRITE FILE THREADS TIMES PAUSE_MS. Each thread reads
 * READ bytes from /dev/zero TIMES times. The first thread also writes WRITE bytes to FILE each
 * time ("-": no file). The program is linked statically, so that the loader reads no libraries. */
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PIECE = 100000 };
static long read_bytes, write_bytes, times, pause_ms;
static const char *file;

static void move(int descriptor, long bytes, ssize_t (*call)(int, char *))
{
	static __thread char buffer[PIECE];

	for (; bytes > 0; bytes -= PIECE)
		if (call(descriptor, buffer) != PIECE)
			abort();
	close(descriptor);
}

static ssize_t get(int descriptor, char *buffer)
{
	return read(descriptor, buffer, PIECE);
}

static ssize_t put(int descriptor, char *buffer)
{
	return write(descriptor, buffer, PIECE);
}

static void *work(void *is_first)
{
	for (long done = 0; done < times; done++) {
		move(open("/dev/zero", O_RDONLY), read_bytes, get);
		if (is_first && strcmp(file, "-") != 0)
			move(open(file, O_WRONLY | O_CREAT | O_APPEND, 0600), write_bytes, put);
		usleep(pause_ms * 1000);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[64];
	long count = argc == 7 ? atol(argv[4]) : 0;

	if (count < 1 || count > 64)
		return 2;
	read_bytes = atol(argv[1]);
	write_bytes = atol(argv[2]);
	file = argv[3];
	times = atol(argv[5]);
	pause_ms = atol(argv[6]);
	for (long at = 1; at < count; at++)
		if (pthread_create(&threads[at], NULL, work, NULL))
			return 1;
	work(argv);
	for (long at = 1; at < count; at++)
		pthread_join(threads[at], NULL);
	return 0;
}
