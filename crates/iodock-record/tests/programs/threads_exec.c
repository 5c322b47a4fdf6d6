/* Calls exec in a thread that is not the leader, while other threads work. */
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
static void *work(void *unused) {
    for (;;) { int fd = open("/dev/null", O_RDONLY); char c; (void)!read(fd, &c, 1); close(fd); usleep(1000); }
    return unused;
}
static void *leave(void *unused) {
    usleep(20000);
    execl("/bin/echo", "echo", "replaced", (char *)0);
    return unused;
}
int main(void) {
    pthread_t a, b;
    pthread_create(&a, 0, work, 0);
    pthread_create(&b, 0, leave, 0);
    pthread_join(b, 0);
    return 1;
}
