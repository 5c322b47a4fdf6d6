/* Submits a thousand requests, completions and messages at a time, in FILE: many FILE */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define COUNT 1000
#define CALLS 4
#define BYTES 8

static char bytes[BYTES];
static struct iocb blocks[COUNT], *list[COUNT];
static struct io_event events[COUNT];
static struct mmsghdr messages[COUNT];

static int wrote(aio_context_t context, int calls)
{
	for (int i = 0; i < COUNT; i += COUNT / calls)
		if (syscall(SYS_io_submit, context, COUNT / calls, list + i) != COUNT / calls)
			return 0;
	return syscall(SYS_io_getevents, context, COUNT, COUNT, events, 0) == COUNT;
}

int main(int count, char **arguments)
{
	aio_context_t context = 0;
	int ends[2], fd = count > 1 ? open(arguments[1], O_RDWR | O_CREAT | O_TRUNC, 0600) : -1;
	struct iovec vector = {bytes, BYTES};
	for (int i = 0; i < COUNT; i++) {
		blocks[i] = (struct iocb){.aio_fildes = fd, .aio_lio_opcode = IOCB_CMD_PWRITE, .aio_buf = (unsigned long)bytes,
					  .aio_nbytes = BYTES, .aio_offset = i * BYTES};
		list[i] = &blocks[i];
		messages[i].msg_hdr = (struct msghdr){.msg_iov = &vector, .msg_iovlen = 1};
	}
	if (fd < 0 || syscall(SYS_io_setup, COUNT, &context) || !wrote(context, CALLS) || !wrote(context, 1))
		return 1;
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
		return 2;
	if (fork() == 0) {
		close(ends[0]);
		while (read(ends[1], bytes, BYTES) > 0)
			;
		return 0;
	}
	if (sendmmsg(ends[0], messages, COUNT, 0) != COUNT)
		return 2;
	return 0;
}
