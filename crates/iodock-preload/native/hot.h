/* Constants that the assembly shares with C: record.c checks that they agree. */
#ifndef IODOCK_HOT_H
#define IODOCK_HOT_H

/* A bit mask of the numbers of read, write, pread64 and pwrite64. */
#define DATA_NUMBERS 0x60003
#define LAST_DATA_NUMBER 18
/* A unit of time is 2^4 ticks of the TSC. */
#define TIME_SHIFT 4
/* Upper limit of a record's length without its texts: 1 code, 2 masks, at most 12 numbers of 9 bytes (111
 * bytes), and a reserve. */
#define RECORD_MOST 160

/* Bits for the fields that a record contains. A reader gives an absent field the value in its comment. */
#define HAS_FD 1     /* absent: the descriptor that the previous call used or opened; with a path: the last directory */
#define HAS_SIZE 2   /* absent: the size of the previous call */
#define HAS_RESULT 4 /* absent: the requested size; for calls that open, the last opened descriptor; else 0 */
/* The first byte of a record. Values from 1 to 191 are codes of calls. Higher values are the following heads
 * of short records: read, write, pread64 and pwrite64 calls that began after the previous call had ended.
 * HAS_FD, HAS_SIZE and HAS_RESULT are added to a head for the fields that are present. */
#define HEAD_READ 192
#define HEAD_WRITE 200
#define HEAD_PREAD 208
#define HEAD_PWRITE 228
/* Added to HEAD_PREAD or HEAD_PWRITE if an offset follows, as the distance from the end of the previous
 * positioned call: in bytes, or in units of 512 bytes (then the result equals the size). */
#define WITH_OFFSET 8
#define WITH_BLOCKS 16
#define BLOCK_SHIFT 9

/* Offsets of fields in struct state and in its first stream: */
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
/* Offsets of fields in struct chunk: */
#define CHUNK_USED 8
#define CHUNK_FLIGHT 12
#define CHUNK_FLIGHT_START 48
#define CHUNK_FLIGHT_FD 56
#endif
