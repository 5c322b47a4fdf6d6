/* Makes an exec that the kernel refuses again and again. At any moment in between, a signal handler forks or
 * makes such an exec, too. */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static char *none[] = {NULL}, *script;
static volatile int turns, wrong;

/* Number of runs of the handler: 500 of each of its three kinds. */
#define TURNS 1500

static int ended_with(pid_t child, int code)
{
	int status;
	return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == code;
}

static void interrupt(int signal)
{
	int before = errno;
	pid_t child;
	char *told[] = {script, NULL};
	if (turns >= TURNS)
		return;
	switch (turns++ % 3) {
	case 0:
		if ((child = fork()) == 0)
			_exit(7);
		wrong += !ended_with(child, 7);
		break;
	case 1:
		wrong += execve(script, told, none) != -1 || errno != EACCES;
		break;
	default:
		/* The child continues where its parent was interrupted, during the preparation of an exec. */
		if ((child = fork()) == 0)
			return;
		wrong += !ended_with(child, 9);
	}
	errno = before;
}

int main(int argc, char **argv)
{
	pid_t first = getpid();
	char *told[] = {script = argv[1], NULL}, *given[] = {"A=1", NULL};
	struct sigaction action = {.sa_handler = interrupt, .sa_flags = SA_RESTART};
	sigaction(SIGALRM, &action, NULL);
	struct itimerval often = {{0, 53}, {0, 53}};
	setitimer(ITIMER_REAL, &often, NULL);
	int refused = 1;
	for (int i = 0; turns < TURNS && getpid() == first; i++) {
		refused = execve(script, told, i % 2 ? given : environ) == -1 && errno == EACCES;
		wrong += !refused;
	}
	setitimer(ITIMER_REAL, &(struct itimerval){0}, NULL);
	if (getpid() != first)
		_exit(refused ? 9 : 1);
	printf("%d wrong\n", wrong);
	return 0;
}
