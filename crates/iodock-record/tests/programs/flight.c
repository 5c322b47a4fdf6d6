/* Waits in a read in one thread, while another closes its descriptor and opens a file that gets the same
 * number. */
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

static int ends[2];

static void *reader(void *unused)
{
	char byte;
	read(ends[0], &byte, 1);
	return unused;
}

int main(void)
{
	pthread_t thread;
	pipe(ends);
	int kept = dup(ends[0]);
	pthread_create(&thread, 0, reader, 0);
	usleep(100000);
	close(ends[0]);
	open("/dev/null", O_RDONLY);
	write(ends[1], "x", 1);
	pthread_join(thread, 0);
	close(kept);
	return 0;
}
