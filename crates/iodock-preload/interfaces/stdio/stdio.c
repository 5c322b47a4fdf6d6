/* Intercepts calls of stdio that the program and its libraries make. Calls inside libc are not seen; they
 * belong to the call that the program made. If the next function is not glibc's, a call is only passed on,
 * because its streams may have another layout. */

#include "streams.h"

typedef word call(word, word, word, word, word, word);
#define ALWAYS inline __attribute__((always_inline))
#define RTLD_NEXT ((void *)-1l)

WEAK unsigned long strlen(const char *text);
WEAK void *memchr(const void *from, int byte, unsigned long bytes);
WEAK int *__errno_location(void);
WEAK extern char __libc_single_threaded;
WEAK extern word stdin, stdout;

/* The function to which a call is passed on: the next one of that name after ours. */
struct next { void *real; int is_of_libc; };

static int is_of_libc(const void *function) {
	static struct range libc;
	if (!__atomic_load_n(&libc.to, __ATOMIC_ACQUIRE)) {
		void *in_libc = dlsym(RTLD_NEXT, "gnu_get_libc_version");
		struct range found = in_libc ? iodock_range_of(in_libc) : (struct range){1, 1};
		libc.from = found.from;
		__atomic_store_n(&libc.to, found.to, __ATOMIC_RELEASE);
	}
	return (unsigned long)function >= libc.from && (unsigned long)function < libc.to;
}

static __attribute__((noinline)) void *look_for(struct next *next, const char *name) {
	int kept = __errno_location ? *__errno_location() : 0;
	void *found = dlsym ? dlsym(RTLD_NEXT, name) : 0;
	if (found) {
		next->is_of_libc = is_of_libc(found) && strlen && memchr && &stdin && &stdout;
		__atomic_store_n(&next->real, found, __ATOMIC_RELEASE);
	}
	if (__errno_location)
		*__errno_location() = kept;
	return found;
}

enum kind {
	READS, WRITES, GETS_BYTE, PUTS_BYTE, GETS_LINE, GETS_DELIMITED, PUTS_TEXT, /* counted, if they only access the buffer */
	OPENS, REOPENS, CLOSES, FLUSHES, PRINTS, SCANS, PUSHES_BACK, MOVES, TELLS, SETS, FILLS, SPILLS,
};

static ALWAYS word available(const struct file *file) { return file->read_end - file->read_at; }

/* Returns the length of a line that is complete in the buffer, or `most` if the program wants no more.
 * Returns UNKNOWN if more must be read, and in programs with several threads, where another thread may free
 * the buffer. */
static ALWAYS word line_in_buffer(const struct file *file, int end, word most) {
	word there = available(file);
	const char *found;
	if (!&__libc_single_threaded || !__libc_single_threaded || there <= 0 || most <= 0)
		return UNKNOWN;
	found = memchr(file->read_at, end, (unsigned long)(there < most ? there : most));
	return found ? found + 1 - file->read_at : there >= most ? most : UNKNOWN;
}

/* Whether the call will make no system call, because the buffer contains the wanted bytes, or has room for
 * them. */
static ALWAYS int only_touches_buffer(enum kind kind, word stream, word bytes) {
	const struct file *file = (const struct file *)stream;
	switch (kind) {
	case READS: case GETS_BYTE: return bytes >= 0 && bytes <= available(file);
	case WRITES: case PUTS_BYTE: case PUTS_TEXT: return bytes >= 0 && bytes <= file->write_end - file->write_at;
	case GETS_LINE: case GETS_DELIMITED: return bytes >= 0;
	default: return 0;
	}
}

static ALWAYS int has_failed(enum kind kind, word stream, word wanted, word result) {
	const struct file *file = (const struct file *)stream;
	switch (kind) {
	case READS: return result < wanted && file->flags & HAS_FAILED;
	case WRITES: return result < wanted;
	case GETS_LINE: return !result && file->flags & HAS_FAILED;
	case GETS_DELIMITED: return result < 0 && file->flags & HAS_FAILED;
	case GETS_BYTE: case FILLS: case SCANS: return (int)result == -1 && file->flags & HAS_FAILED;
	case OPENS: case REOPENS: return !result;
	case CLOSES: case PUTS_BYTE: case PUTS_TEXT: case PUSHES_BACK: case SPILLS: return (int)result == -1;
	case TELLS: return result == -1;
	case PRINTS: return (int)result < 0;
	case FLUSHES: case MOVES: return (int)result != 0;
	default: return 0;
	}
}

/* Returns the bytes that the call requested; for some kinds only the result shows them. */
static ALWAYS word bytes_of(enum kind kind, word known, word result) {
	switch (kind) {
	case PRINTS: return (int)result >= 0 ? (int)result : UNKNOWN;
	case GETS_LINE: return result ? (word)strlen((const char *)result) : 0;
	case GETS_DELIMITED: return result >= 0 ? result : 0;
	default: return known;
	}
}

static ALWAYS word missing(enum kind kind) {
	return kind == OPENS || kind == REOPENS || kind == READS || kind == WRITES || kind == GETS_LINE ? 0 : -1;
}

struct asked { u32 number; enum kind kind; word stream, bytes, wanted; };

static __attribute__((noinline)) word tell(call *real, const struct asked *asked, const word *given, const struct within *outer, const void *frame) {
	word stream = asked->stream, descriptor = descriptor_of(stream), result;
	word facts[FACTS_OF_STREAM] = {outer->layer != PROGRAM ? outer->layer : UNKNOWN, stream ? stream : UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, descriptor, UNKNOWN};
	if (stream)
		iodock_tell_counts(stream, asked->kind == CLOSES || asked->kind == REOPENS);
	else if (asked->kind == FLUSHES)
		iodock_tell_all_counts();
	if (!iodock_interface(BEGINS, asked->number, facts, FACTS_OF_STREAM, 0))
		return real(given[0], given[1], given[2], given[3], given[4], given[5]);
	iodock_within = (struct within){STDIO_LAYER, frame};
	result = real(given[0], given[1], given[2], given[3], given[4], given[5]);
	iodock_within = *outer;
	int gives = (asked->kind == OPENS || asked->kind == REOPENS) && result;
	if (gives)
		iodock_tell_counts(result, 1);
	word told[FACTS_OF_STREAM] = {has_failed(asked->kind, stream, asked->wanted, result) ? -1 : 0, gives ? result : asked->kind == CLOSES ? stream : UNKNOWN,
				      bytes_of(asked->kind, asked->bytes, result), UNKNOWN, UNKNOWN, UNKNOWN, gives ? descriptor_of(result) : UNKNOWN, UNKNOWN};
	iodock_interface(ENDS, asked->number, told, FACTS_OF_STREAM, 0);
	return result;
}

static ALWAYS word take(struct next *next, const char *name, struct asked asked, const word *given) {
	call *real = __atomic_load_n(&next->real, __ATOMIC_ACQUIRE);
	const void *frame = __builtin_frame_address(0);
	struct within outer;
	if (unlikely(!real) && !(real = look_for(next, name)))
		return missing(asked.kind);
	int needs_stream = asked.kind != OPENS && asked.kind != FLUSHES;
	if (unlikely(!next->is_of_libc || (needs_stream && !asked.stream) || !is_below(STDIO_LAYER, frame, &outer)))
		return real(given[0], given[1], given[2], given[3], given[4], given[5]);
	word bytes = asked.bytes;
	if (asked.kind == PUTS_TEXT)
		asked.bytes = bytes += (word)strlen((const char *)given[0]);
	if (asked.kind == GETS_LINE || asked.kind == GETS_DELIMITED)
		bytes = line_in_buffer((const struct file *)asked.stream, (int)asked.wanted, asked.bytes);
	/* Only calls that the program makes itself are counted: a call inside a recorded call of another layer is
	 * recorded on its own. */
	if (asked.kind <= PUTS_TEXT && outer.layer == PROGRAM && only_touches_buffer(asked.kind, asked.stream, bytes) &&
	    iodock_count(asked.number, asked.stream, bytes))
		return real(given[0], given[1], given[2], given[3], given[4], given[5]);
	return tell(real, &asked, given, &outer, frame);
}

static ALWAYS word product(word a, word b) {
	word both;
	return __builtin_mul_overflow(a, b, &both) || both < 0 ? UNKNOWN : both;
}

/* Defines the function that intercepts `symbol`. `bytes`: the number of bytes that the call requests, for
 * lines the maximum. `wanted`: the number of elements, for lines the character that ends a line. */
#define TAKE(symbol, name, kind, stream, bytes, wanted) \
	TAKEN word symbol(word a, word b, word c, word d, word e, word f) { \
		static struct next next; \
		const word given[6] = {a, b, c, d, e, f}; \
		return take(&next, #symbol, (struct asked){NUMBER_##name, kind, stream, bytes, wanted}, given); \
	}
/* Defines the function that intercepts a call with a variable number of arguments. It passes the arguments as
 * a list to the next function `behind`. */
#define TAKE_LIST(symbol, name, kind, behind, stream, places, ...) \
	TAKEN int symbol(places, ...) { \
		static struct next next; \
		__builtin_va_list list; \
		__builtin_va_start(list, format); \
		const word given[6] = {__VA_ARGS__, (word)(void *)list}; \
		int result = (int)take(&next, #behind, (struct asked){NUMBER_##name, kind, stream, UNKNOWN, 0}, given); \
		__builtin_va_end(list); \
		return result; \
	}

TAKE(fread, fread, READS, d, product(b, c), c)
TAKE(fread_unlocked, fread, READS, d, product(b, c), c)
TAKE(__fread_chk, fread, READS, e, product(c, d), d)
TAKE(__fread_unlocked_chk, fread, READS, e, product(c, d), d)
TAKE(fwrite, fwrite, WRITES, d, product(b, c), c)
TAKE(fwrite_unlocked, fwrite, WRITES, d, product(b, c), c)
TAKE(fgetc, fgetc, GETS_BYTE, a, 1, 0)
TAKE(fgetc_unlocked, fgetc, GETS_BYTE, a, 1, 0)
TAKE(getc, getc, GETS_BYTE, a, 1, 0)
TAKE(getc_unlocked, getc, GETS_BYTE, a, 1, 0)
TAKE(_IO_getc, getc, GETS_BYTE, a, 1, 0)
TAKE(getchar, getchar, GETS_BYTE, stdin, 1, 0)
TAKE(getchar_unlocked, getchar, GETS_BYTE, stdin, 1, 0)
TAKE(fputc, fputc, PUTS_BYTE, b, 1, 0)
TAKE(fputc_unlocked, fputc, PUTS_BYTE, b, 1, 0)
TAKE(putc, putc, PUTS_BYTE, b, 1, 0)
TAKE(putc_unlocked, putc, PUTS_BYTE, b, 1, 0)
TAKE(_IO_putc, putc, PUTS_BYTE, b, 1, 0)
TAKE(putchar, putchar, PUTS_BYTE, stdout, 1, 0)
TAKE(putchar_unlocked, putchar, PUTS_BYTE, stdout, 1, 0)
TAKE(fgets, fgets, GETS_LINE, c, (int)b - 1, '\n')
TAKE(fgets_unlocked, fgets, GETS_LINE, c, (int)b - 1, '\n')
TAKE(__fgets_chk, fgets, GETS_LINE, d, (int)c - 1, '\n')
TAKE(__fgets_unlocked_chk, fgets, GETS_LINE, d, (int)c - 1, '\n')
TAKE(fputs, fputs, PUTS_TEXT, b, 0, 0)
TAKE(fputs_unlocked, fputs, PUTS_TEXT, b, 0, 0)
TAKE(puts, puts, PUTS_TEXT, stdout, 1, 0)
#define ANY_LENGTH (~UNKNOWN)
TAKE(getline, getline, GETS_DELIMITED, c, ANY_LENGTH, '\n')
TAKE(getdelim, getdelim, GETS_DELIMITED, d, ANY_LENGTH, c)
TAKE(__getdelim, getdelim, GETS_DELIMITED, d, ANY_LENGTH, c)

TAKE(fopen, fopen, OPENS, 0, UNKNOWN, 0)
TAKE(fopen64, fopen, OPENS, 0, UNKNOWN, 0)
TAKE(fdopen, fdopen, OPENS, 0, UNKNOWN, 0)
TAKE(freopen, freopen, REOPENS, c, UNKNOWN, 0)
TAKE(freopen64, freopen, REOPENS, c, UNKNOWN, 0)
TAKE(tmpfile, tmpfile, OPENS, 0, UNKNOWN, 0)
TAKE(tmpfile64, tmpfile, OPENS, 0, UNKNOWN, 0)
TAKE(popen, popen, OPENS, 0, UNKNOWN, 0)
TAKE(fclose, fclose, CLOSES, a, UNKNOWN, 0)
TAKE(pclose, pclose, CLOSES, a, UNKNOWN, 0)
TAKE(fflush, fflush, FLUSHES, a, UNKNOWN, 0)
TAKE(fflush_unlocked, fflush, FLUSHES, a, UNKNOWN, 0)
TAKE(ungetc, ungetc, PUSHES_BACK, b, UNKNOWN, 0)
TAKE(fseek, fseek, MOVES, a, UNKNOWN, 0)
TAKE(fseeko, fseeko, MOVES, a, UNKNOWN, 0)
TAKE(fseeko64, fseeko, MOVES, a, UNKNOWN, 0)
TAKE(ftell, ftell, TELLS, a, UNKNOWN, 0)
TAKE(ftello, ftello, TELLS, a, UNKNOWN, 0)
TAKE(ftello64, ftello, TELLS, a, UNKNOWN, 0)
TAKE(rewind, rewind, SETS, a, UNKNOWN, 0)
TAKE(fgetpos, fgetpos, MOVES, a, UNKNOWN, 0)
TAKE(fgetpos64, fgetpos, MOVES, a, UNKNOWN, 0)
TAKE(fsetpos, fsetpos, MOVES, a, UNKNOWN, 0)
TAKE(fsetpos64, fsetpos, MOVES, a, UNKNOWN, 0)
TAKE(setvbuf, setvbuf, MOVES, a, UNKNOWN, 0)
TAKE(setbuf, setbuf, SETS, a, UNKNOWN, 0)
TAKE(setbuffer, setbuffer, SETS, a, UNKNOWN, 0)
TAKE(setlinebuf, setlinebuf, SETS, a, UNKNOWN, 0)
TAKE(__uflow, __uflow, FILLS, a, 1, 0)
TAKE(__overflow, __overflow, SPILLS, a, 1, 0)

TAKE(vfprintf, vfprintf, PRINTS, a, UNKNOWN, 0)
TAKE(__vfprintf_chk, vfprintf, PRINTS, a, UNKNOWN, 0)
TAKE(vprintf, vprintf, PRINTS, stdout, UNKNOWN, 0)
TAKE(__vprintf_chk, vprintf, PRINTS, stdout, UNKNOWN, 0)
TAKE(vfscanf, vfscanf, SCANS, a, UNKNOWN, 0)
TAKE(__isoc99_vfscanf, vfscanf, SCANS, a, UNKNOWN, 0)
TAKE(__isoc23_vfscanf, vfscanf, SCANS, a, UNKNOWN, 0)
TAKE(vscanf, vscanf, SCANS, stdin, UNKNOWN, 0)
TAKE(__isoc99_vscanf, vscanf, SCANS, stdin, UNKNOWN, 0)
TAKE(__isoc23_vscanf, vscanf, SCANS, stdin, UNKNOWN, 0)
#define OF_STREAM word stream, word format
#define OF_STREAM_CHECKED word stream, word flag, word format
#define OF_USUAL word format
#define OF_USUAL_CHECKED word flag, word format
TAKE_LIST(fprintf, fprintf, PRINTS, vfprintf, stream, OF_STREAM, stream, format)
TAKE_LIST(__fprintf_chk, fprintf, PRINTS, __vfprintf_chk, stream, OF_STREAM_CHECKED, stream, flag, format)
TAKE_LIST(printf, printf, PRINTS, vprintf, stdout, OF_USUAL, format)
TAKE_LIST(__printf_chk, printf, PRINTS, __vprintf_chk, stdout, OF_USUAL_CHECKED, flag, format)
TAKE_LIST(fscanf, fscanf, SCANS, vfscanf, stream, OF_STREAM, stream, format)
TAKE_LIST(__isoc99_fscanf, fscanf, SCANS, __isoc99_vfscanf, stream, OF_STREAM, stream, format)
TAKE_LIST(__isoc23_fscanf, fscanf, SCANS, __isoc23_vfscanf, stream, OF_STREAM, stream, format)
TAKE_LIST(scanf, scanf, SCANS, vscanf, stdin, OF_USUAL, format)
TAKE_LIST(__isoc99_scanf, scanf, SCANS, __isoc99_vscanf, stdin, OF_USUAL, format)
TAKE_LIST(__isoc23_scanf, scanf, SCANS, __isoc23_vscanf, stdin, OF_USUAL, format)
