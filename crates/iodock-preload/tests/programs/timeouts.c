/* The main thread's timer is a time-out that its handler leaves by siglongjmp; another thread sleeps, and must not get it. `timeouts MANY`. */
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <unistd.h>

#define AFTER_US 1000

static sigjmp_buf out;
static pthread_t first;
static volatile int elsewhere;

static void handler(int number)
{
	if (pthread_equal(pthread_self(), first))
		siglongjmp(out, 1);
	elsewhere++;
}

static void *sleeps(void *unused)
{
	for (;;)
		pause();
	return unused;
}

int main(int count, char **arguments)
{
	struct sigaction action = {.sa_handler = handler};
	struct itimerval often = {{0, AFTER_US}, {0, AFTER_US}};
	volatile int left = atoi(arguments[1]);
	char bytes[16];
	pthread_t thread;
	int file = open("/dev/zero", O_RDONLY);
	first = pthread_self();
	sigaction(SIGALRM, &action, 0);
	pthread_create(&thread, 0, sleeps, 0);
	if (sigsetjmp(out, 1))
		left--;
	setitimer(ITIMER_REAL, &often, 0);
	for (long i = 0; left > 0; i++)
		pread(file, bytes, (size_t)i % sizeof(bytes), i * 13);
	signal(SIGALRM, SIG_IGN);
	printf("%d\n", elsewhere);
	return 0;
}
