/* A signal handler forks at any moment, and its child continues where its parent was interrupted. The program
 * prints its process id, the number of reads, and the number of children. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHILDREN 2000
#define EACH 30

static volatile int is_child, forked;

static void on_alarm(int signal)
{
	(void)signal;
	pid_t child = is_child ? -1 : fork();
	if (child == 0)
		is_child = 1;
	forked += child > 0;
}

static void every(int microseconds)
{
	struct itimerval interval = {{0, microseconds}, {0, microseconds}};
	setitimer(ITIMER_REAL, &interval, NULL);
}

int main(void)
{
	struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
	int zero = open("/dev/zero", O_RDONLY), status, left = EACH, gone = 0;
	char buffer[4096], name[] = "/a path that is not there, and another one each time: 0000";
	struct stat none;
	long reads = 0;
	sigaction(SIGALRM, &action, NULL);
	every(200);
	for (long i = 0; gone < CHILDREN; i++) {
		reads++;
		if (pread(zero, buffer, 100 + (i & 255), i * 7) != 100 + (i & 255))
			_exit(1);
		sprintf(name + sizeof(name) - 5, "%04ld", i % 10000);
		if (stat(name, &none) == 0)
			_exit(2);
		if (is_child) {
			if (left-- == 0)
				_exit(0);
			continue;
		}
		while (gone < forked && waitpid(-1, &status, WNOHANG) > 0) {
			if (status)
				exit(3);
			gone++;
		}
	}
	/* Signals are blocked, because a child that is forked from here on would be counted but would make no
	 * read. */
	sigset_t alarm;
	sigemptyset(&alarm), sigaddset(&alarm, SIGALRM);
	sigprocmask(SIG_BLOCK, &alarm, NULL);
	if (is_child)
		_exit(0);
	printf("%d %ld %d\n", getpid(), reads, forked);
	return 0;
}
