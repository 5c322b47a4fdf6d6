/* Reads by an instruction of its own, past libc. */
#include <fcntl.h>

int main(void)
{
	char buffer[16];
	int zero = open("/dev/zero", O_RDONLY);
	for (int i = 0; i < 10; i++) {
		long result;
		__asm__ volatile("xorl %%eax, %%eax; syscall" : "=a"(result) : "D"(zero), "S"(buffer), "d"(16) : "rcx", "r11", "memory");
		if (result != 16)
			return 1;
	}
	return 0;
}
