/* The intercepted calls of stdio, numbered after those in layers.h.
 *
 *   COUNTED  Such calls mostly only access the buffer. They are counted for each stream and recorded together.
 *   TOLD     Each call is recorded.
 *
 * Variants of a call (fortified, 64-bit, without a lock) are recorded under the name in C. An inlined
 * getc_unlocked or putc_unlocked calls `__uflow` or `__overflow` if the buffer is empty or full.
 */
#define EACH_OF_STDIO(COUNTED, TOLD) \
	COUNTED(fread) \
	COUNTED(fwrite) \
	COUNTED(fgetc) \
	COUNTED(getc) \
	COUNTED(getchar) \
	COUNTED(fputc) \
	COUNTED(putc) \
	COUNTED(putchar) \
	COUNTED(fgets) \
	COUNTED(fputs) \
	COUNTED(puts) \
	COUNTED(getline) \
	COUNTED(getdelim) \
	TOLD(fopen) \
	TOLD(fdopen) \
	TOLD(freopen) \
	TOLD(tmpfile) \
	TOLD(popen) \
	TOLD(fclose) \
	TOLD(pclose) \
	TOLD(fflush) \
	TOLD(fprintf) \
	TOLD(vfprintf) \
	TOLD(printf) \
	TOLD(vprintf) \
	TOLD(fscanf) \
	TOLD(vfscanf) \
	TOLD(scanf) \
	TOLD(vscanf) \
	TOLD(ungetc) \
	TOLD(fseek) \
	TOLD(fseeko) \
	TOLD(ftell) \
	TOLD(ftello) \
	TOLD(rewind) \
	TOLD(fgetpos) \
	TOLD(fsetpos) \
	TOLD(setvbuf) \
	TOLD(setbuf) \
	TOLD(setbuffer) \
	TOLD(setlinebuf) \
	TOLD(__uflow) \
	TOLD(__overflow)
