/* Writes to the given file whether a library was preloaded. With a second argument it also writes how many
 * arguments of 100 bytes an exec of that program accepts here. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST 60000

static int takes(char *program, int count)
{
	static char argument[100], *arguments[MOST + 2];
	for (int i = 0; i < 99; i++)
		argument[i] = 'x';
	arguments[0] = program;
	for (int i = 1; i <= count; i++)
		arguments[i] = argument;
	arguments[count + 1] = 0;
	int status = 1;
	pid_t child = fork();
	if (child == 0) {
		execv(program, arguments);
		_exit(7);
	}
	waitpid(child, &status, 0);
	return status == 0;
}

int main(int count, char **arguments)
{
	FILE *file = fopen(arguments[1], "w");
	int least = 0, most = MOST;
	fputs(getenv("LD_PRELOAD") ? "told" : "not told", file);
	while (count > 2 && least < most) {
		int middle = (least + most + 1) / 2;
		if (takes(arguments[2], middle))
			least = middle;
		else
			most = middle - 1;
	}
	fprintf(file, " %d\n", least);
	return fclose(file);
}
