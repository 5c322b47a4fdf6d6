/* Runs four threads, each of which writes and reads blocks of its own file. threads FOLDER COUNT */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *folder;
static long count = 10000;

static void *work(void *number) {
    char name[4096], block[1024] = {0};
    snprintf(name, sizeof name, "%s/thread-%ld.dat", folder, (long)number);
    int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0644);
    for (long i = 0; i < count; i++)
        if (pwrite(fd, block, sizeof block, i % 64 * 1024) < 0 || pread(fd, block, sizeof block, 0) < 0) perror(name);
    close(fd);
    return NULL;
}

int main(int argc, char **argv) {
    pthread_t threads[4];
    if (argc < 2) { fprintf(stderr, "threads FOLDER COUNT\n"); return 1; }
    folder = argv[1];
    if (argc > 2) count = atol(argv[2]);
    mkdir(folder, 0755);
    for (long i = 0; i < 4; i++) pthread_create(&threads[i], NULL, work, (void *)i);
    for (long i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    return 0;
}
