/* Loads the libraries that its arguments name; each into its own linker namespace if the first argument is
 * `apart`. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>

int main(int argc, char **argv)
{
	int apart = argc > 1 && !strcmp(argv[1], "apart");
	for (int i = 1 + apart; i < argc; i++)
		if (!(apart ? dlmopen(LM_ID_NEWLM, argv[i], RTLD_NOW) : dlopen(argv[i], RTLD_NOW)))
			return 1;
	return 0;
}
