/* Writes lines to a file and flushes each: stdio_flush FILE LINES */
#include <stdio.h>
#include <stdlib.h>

int main(int count, char **arguments)
{
	FILE *file = count == 3 ? fopen(arguments[1], "w") : NULL;
	if (!file)
		return 1;
	for (int line = atoi(arguments[2]); line > 0; line--) {
		fprintf(file, "step %d: residual %g\n", line, 1.0 / line);
		fflush(file);
	}
	return fclose(file) != 0;
}
