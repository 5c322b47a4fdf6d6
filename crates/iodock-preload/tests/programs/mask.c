/* The first thread reads all the time, and another thread checks whether signals are blocked in it. `mask
 * LOOKS` makes LOOKS checks, and prints how often they were blocked. The program never blocks signals itself;
 * if the recorder did, signals for the process would go to another thread. */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static volatile int has_begun, is_over, held;
static long looks;

static void *look(void *unused)
{
	char path[64], text[4096];
	snprintf(path, sizeof(path), "/proc/self/task/%d/status", getpid());
	int status = open(path, O_RDONLY);
	/* pthread_create blocks signals for a moment, so the checks begin after it. */
	while (!has_begun)
		usleep(100);
	for (long i = 0; i < looks; i++) {
		long count = pread(status, text, sizeof(text) - 1, 0);
		text[count > 0 ? count : 0] = 0;
		const char *mask = strstr(text, "SigBlk:");
		held += !mask || strtoull(mask + strlen("SigBlk:"), 0, 16) != 0;
	}
	is_over = 1;
	return unused;
}

int main(int count, char **arguments)
{
	char bytes[16];
	pthread_t thread;
	int file = open("/dev/zero", O_RDONLY);
	looks = atol(arguments[1]);
	pthread_create(&thread, 0, look, 0);
	has_begun = 1;
	for (long i = 0; !is_over; i++)
		pread(file, bytes, (size_t)i % sizeof(bytes), i * 13);
	pthread_join(thread, 0);
	printf("%d\n", held);
	return 0;
}
