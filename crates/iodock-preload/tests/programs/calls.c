/* Makes a known number of calls of each kind. calls DIRECTORY [PREADS] */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

static char buffer[4096];

static void *thread(void *name)
{
	char mine[4096];
	int fd = open(name, O_RDONLY);
	for (int i = 0; i < 101; i++)
		if (pread(fd, mine, 512, i * 512) != 512)
			abort();
	close(fd);
	return NULL;
}

int main(int argc, char **argv)
{
	int preads = argc > 2 ? atoi(argv[2]) : 997;
	char name[512];
	pthread_t threads[3];
	struct stat status;
	if (chdir(argv[1]))
		return 2;
	int fd = open("data", O_RDWR | O_CREAT | O_TRUNC, 0600);
	for (int i = 0; i < 64; i++)
		if (write(fd, buffer, sizeof buffer) != sizeof buffer)
			return 3;
	for (int i = 0; i < preads; i++)
		if (pread(fd, buffer, sizeof buffer, (i & 63) * 4096) != sizeof buffer)
			return 4;
	for (int i = 0; i < 31; i++) {
		snprintf(name, sizeof name, "small-%d", i);
		int small = open(name, O_WRONLY | O_CREAT, 0600);
		if (write(small, "hello", 5) != 5)
			return 5;
		close(small);
		if (stat(name, &status) || status.st_size != 5)
			return 6;
		unlink(name);
		if (stat(name, &status) == 0)
			return 7;
	}
	if (stat((char *)8, &status) == 0 || open((char *)16, O_RDONLY) >= 0)
		return 8;
	struct iovec vector[2] = {{buffer, 100}, {buffer + 100, 200}};
	if (pwritev(fd, vector, 2, 0) != 300 || lseek(fd, 0, SEEK_SET) || readv(fd, vector, 2) != 300)
		return 9;
	for (int i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, thread, "data");
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	FILE *stream = fopen("text", "w");
	for (int i = 0; i < 17; i++) {
		fprintf(stream, "%d\n", i);
		fflush(stream);
	}
	fclose(stream);
	DIR *directory = opendir(".");
	while (readdir(directory))
		;
	closedir(directory);
	for (int i = 0; i < 5; i++) {
		pid_t child = i < 3 ? fork() : vfork();
		if (child == 0) {
			if (i < 3)
				if (pread(fd, buffer, 10, 0) != 10)
					_exit(1);
			if (i == 2)
				execl("/nonexistent", "x", NULL), execl("/bin/true", "true", NULL);
			if (i == 4)
				execl("/bin/true", "true", NULL);
			_exit(i);
		}
		int ended;
		waitpid(child, &ended, 0);
		printf("%d: %d\n", i, WEXITSTATUS(ended));
		fflush(stdout);
	}
	void *map = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 4096);
	munmap(map, 4096);
	if (system("echo from a shell"))
		return 10;
	close(fd);
	unlink("data");
	unlink("text");
	puts("done");
	return 0;
}
