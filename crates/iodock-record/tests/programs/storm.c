/* Creates 60,000 processes, one after the other. */
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void)
{
	for (int i = 0; i < 60000; i++) {
		pid_t child = fork();
		if (child < 0)
			return 1;
		if (!child)
			_exit(0);
		waitpid(child, NULL, 0);
	}
	return 0;
}
