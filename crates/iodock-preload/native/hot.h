/* Constants that the assembly shares with C: record.c checks that they agree. */
#ifndef IODOCK_HOT_H
#define IODOCK_HOT_H

/* one bit for each of read, write, pread64 and pwrite64 */
#define DATA_NUMBERS 0x60003
#define LAST_DATA_NUMBER 18
/* A unit of time is 2^4 ticks of the TSC. */
#define TIME_SHIFT 4
/* Maximum length of a record without its texts: 1 code, 2 masks, at most 12 numbers of 9 bytes, and a
 * little. */
#define RECORD_MOST 160

/* Fields of a record. A field that is absent has the value that its comment names. */
#define HAS_FD 1     /* else the descriptor of the previous call (for a call with a path: with a path), or the one that it opened */
#define HAS_SIZE 2   /* else the size of the previous call */
#define HAS_RESULT 4 /* else the requested size, the last descriptor that was opened, or 0 for calls without */
/* First byte of a record: 1 to 191 are calls by their codes. Higher values are data calls that began after
 * the previous one had ended, with unchanged fields omitted: read, write, pread64, pwrite64. HAS_FD,
 * HAS_SIZE and HAS_RESULT are added for the fields that are present. */
#define HEAD_READ 192
#define HEAD_WRITE 200
#define HEAD_PREAD 208
#define HEAD_PWRITE 228
/* Those with an offset: minus the end of the previous positioned call, or in units of 512 bytes (then the
 * result equals the size). */
#define WITH_OFFSET 8
#define WITH_BLOCKS 16
#define BLOCK_SHIFT 9

/* Offsets in struct state, and in its first stream */
#define STATE_TAKEN_AND_LEVEL 0
#define STATE_LEVEL 4
#define STATE_AT 8
#define STATE_LIMIT 16
#define STATE_CHUNK 24
#define STATE_END 32
#define STATE_SIZE 40
#define STATE_OFFSET 48
#define STATE_FD 56
#define STATE_FLIGHT 328
#define STATE_WRITER 336
#define STATE_UNTIMED 440
/* Offsets in struct chunk */
#define CHUNK_USED 8
#define CHUNK_FLIGHT 12
#define CHUNK_FLIGHT_START 48
#define CHUNK_FLIGHT_FD 56
#endif
