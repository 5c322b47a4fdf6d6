/* What the assembly knows of the C: record.c holds it to that. */
#ifndef IODOCK_HOT_H
#define IODOCK_HOT_H

/* read, write, pread64, pwrite64: a bit each */
#define DATA_NUMBERS 0x60003
#define LAST_DATA_NUMBER 18
/* A unit of time is 2^4 ticks of the TSC. */
#define TIME_SHIFT 4
/* No record is longer but for its texts: 1 code, 2 masks, at most 12 numbers of 9 bytes, and a little. */
#define RECORD_MOST 160

/* What a record has. */
#define HAS_FD 1     /* else that of the call before, or what it opened; with a path that of the call with a path before */
#define HAS_SIZE 2   /* else that of the call before */
#define HAS_RESULT 4 /* else the size asked for, the last descriptor that was opened, or 0 for calls without */
/* First byte of a record: 1 to 191 are calls by their codes. From here on stand the data calls that began after the one before had ended,
 * with what is as before left out: read, write, pread64, pwrite64. To each is added which of HAS_FD, HAS_SIZE and HAS_RESULT is there. */
#define HEAD_READ 192
#define HEAD_WRITE 200
#define HEAD_PREAD 208
#define HEAD_PWRITE 228
/* Those with an offset: less the end of the positioned call before, or in 512 bytes (then the result is the size). */
#define WITH_OFFSET 8
#define WITH_BLOCKS 16
#define BLOCK_SHIFT 9

/* In struct state, with its first stream */
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
/* In struct chunk */
#define CHUNK_USED 8
#define CHUNK_FLIGHT 12
#define CHUNK_FLIGHT_START 48
#define CHUNK_FLIGHT_FD 56
#endif
