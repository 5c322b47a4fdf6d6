/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Requests inside io_uring: from their submission to their completion. */
#ifndef IODOCK_REQUESTS_H
#define IODOCK_REQUESTS_H

#include "buffers.h"

#define REQUESTS 8192
/* The request's descriptor is an index into files that were registered before. */
#define FIXED_FILE 1
#define NO_DESCRIPTOR 0x80000000u

struct request {
	u64 start, offset;
	u32 tid, fd, opcode, length;
};

/* Requests in flight, by the address of the kernel's own structure. */
struct {
	FIGURE(type, BPF_MAP_TYPE_HASH);
	FIGURE(max_entries, REQUESTS);
	u64 *key;
	struct request *value;
} requests SECTION(".maps");

struct request_record {
	u64 first, end, duration;
	s64 result;
	u32 fd, length;
	u64 offset;
};

INLINE void count_dropped(void)
{
	struct cpu *cpu = own_cpu();
	if (cpu)
		cpu->dropped++;
}

INLINE void submitted(struct io_kiocb *request)
{
	struct slot *slot = submitter();
	if (!slot)
		return;
	u64 key = (u64)request;
	struct io_rw *move = (void *)request;
	struct request value = {
		.start = ktime_ns(),
		.offset = FIELD(move, kiocb.ki_pos),
		.tid = slot->tid,
		.fd = request->flags & FIXED_FILE ? NO_DESCRIPTOR : (u32)request->cqe.fd,
		.opcode = request->opcode,
		.length = FIELD(move, len),
	};
	if (map_update(&requests, &key, &value, 0))
		count_dropped();
}

INLINE void completed(u64 key, struct io_uring_cqe *completion)
{
	struct request *request = map_lookup(&requests, &key);
	struct place place;
	if (!request)
		return;
	u64 end = ktime_ns();
	if (reserve(&place, sizeof(struct request_record), SPARE)) {
		u32 at = place.at;
		if (at > CHUNK - sizeof(struct request_record))
			return;
		struct request_record *record = (void *)(place.chunk->bytes + at);
		record->first = first_word(KIND_REQUEST, request->opcode, request->tid, sizeof *record);
		record->end = end;
		record->duration = end - request->start;
		record->result = FIELD(completion, res);
		record->fd = request->fd;
		record->length = request->length;
		record->offset = request->offset;
		commit(&place, sizeof *record, end);
	}
	map_delete(&requests, &key);
}

#endif
