/* Page faults in mapped files: the recorder samples them, from before the first access if it is notified
 * in time. A child inherits this. */

#include "recorder.h"

#define LOOK_NS 2500000l
#define TRIES 20

static u32 watched;

/* mmap has returned; nothing in the map has been accessed. */
void has_mapped(const struct state *state, const u64 *arguments, s64 result) {
	u64 least = session->watch_from;
	if (watched || !least || arguments[1] < least || failed(result) || (arguments[3] & MAP_ANONYMOUS))
		return;
	/* WATCH_ALL: programs and libraries too. */
	if (least != WATCH_ALL && (arguments[2] & PROT_EXEC || arguments[3] & MAP_DENYWRITE))
		return;
	enum answer answer = ask_recorder(&session->watch_asking, state->owner, &session->watch_from, TRIES, TRIES, LOOK_NS);
	/* (Without an answer there must be no further request.) */
	if (answer == NO_ANSWER || (answer == ANSWERED && __atomic_load_n(&session->watch_begun, __ATOMIC_ACQUIRE) == state->owner))
		watched = 1;
}
