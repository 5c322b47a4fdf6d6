/* Makes every kind of call that the recorder decodes, always in the same order. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>
static void *work(void *path) {
    for (int i = 0; i < 20; i++) {
        int fd = open(path, O_RDONLY);
        char buffer[100];
        (void)!pread(fd, buffer, 100, i);
        close(fd);
    }
    return 0;
}
static void asynchronous(int fd) {
    aio_context_t context = 0;
    static char buffer[512];
    struct iocb block = {0}, *blocks[1] = {&block};
    struct io_event event;
    block.aio_fildes = fd;
    block.aio_lio_opcode = IOCB_CMD_PREAD;
    block.aio_buf = (unsigned long)buffer;
    block.aio_nbytes = 512;
    block.aio_offset = 64;
    if (syscall(SYS_io_setup, 4, &context) == 0) {
        syscall(SYS_io_submit, context, 1, blocks);
        syscall(SYS_io_getevents, context, 1, 1, &event, 0);
        syscall(SYS_io_destroy, context);
    }
}
int main(int argc, char **argv) {
    (void)argc;
    if (chdir(argv[1])) return 2;
    int fd = open("zoo.dat", O_RDWR | O_CREAT | O_TRUNC, 0644);
    char block[4096];
    memset(block, 'x', sizeof block);
    for (int i = 0; i < 10; i++) (void)!write(fd, block, sizeof block);
    struct iovec vectors[2] = {{block, 1000}, {block, 24}};
    (void)!writev(fd, vectors, 2);
    lseek(fd, 100, SEEK_SET);
    (void)!read(fd, block, 300);
    (void)!preadv(fd, vectors, 2, 5000);
    int copy = open("zoo.copy", O_RDWR | O_CREAT | O_TRUNC, 0644);
    off_t from = 10;
    (void)!sendfile(copy, fd, &from, 2000);
    loff_t in = 0, out = 8192;
    (void)!copy_file_range(fd, &in, copy, &out, 3000, 0);
    int two = dup(fd), three = fcntl(fd, F_DUPFD_CLOEXEC, 50);
    dup2(two, 77);
    asynchronous(three);
    close(two);
    int ends[2], pair[2];
    (void)!pipe(ends);
    socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
    struct msghdr message = {.msg_iov = vectors, .msg_iovlen = 2};
    sendmsg(pair[0], &message, 0);
    recvmsg(pair[1], &message, 0);
    struct stat status;
    stat("zoo.dat", &status);
    open("missing", O_RDONLY);
    open((char *)8, O_RDONLY);
    rename("zoo.copy", "zoo.moved");
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) pthread_create(&threads[i], 0, work, "zoo.dat");
    for (int i = 0; i < 3; i++) pthread_join(threads[i], 0);
    pid_t child = fork();
    if (child == 0) {
        (void)!write(ends[1], "abc", 3);
        execl("/bin/true", "true", (char *)0);
    }
    int result;
    waitpid(child, &result, 0);
    if (vfork() == 0) _exit(5);
    wait(&result);
    unlink("zoo.moved");
    unlink("zoo.dat");
    return 7;
}
