/* Calls access(2) alternately for two missing files. few_paths ROUNDS */
#include <stdlib.h>
#include <unistd.h>

int main(int count, char **arguments)
{
	static const char *const paths[] = {"/3/a folder of its own/database", "/4/a folder of its own/database"};
	for (long round = count > 1 ? atol(arguments[1]) : 0; round > 0; round--)
		for (int i = 0; i < 2; i++)
			access(paths[i], F_OK);
	return 0;
}
