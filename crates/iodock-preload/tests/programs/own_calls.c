/* Reads by its own `syscall` instruction, without libc. If TOLD is defined, the caller passes the call's
 * number; otherwise it is a constant. */
#include <fcntl.h>

#ifdef TOLD
#define NUMBER
#else
#define NUMBER "xorl %%eax, %%eax; "
#endif

__attribute__((noipa)) static long call(long number, long file, char *buffer, long bytes)
{
	long result;
	__asm__ volatile(NUMBER "syscall" : "=a"(result) : "0"(number), "D"(file), "S"(buffer), "d"(bytes) : "rcx", "r11", "memory");
	return result;
}

int main(void)
{
	char buffer[16];
	int zero = open("/dev/zero", O_RDONLY);
	for (int i = 0; i < 10; i++)
		if (call(0, zero, buffer, 16) != 16)
			return 1;
	return 0;
}
