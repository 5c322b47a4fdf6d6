/* Requests that the recorder samples the page faults of this process, when it maps a file. The request is
 * made before the first access. Children inherit the sampling. */

#include "recorder.h"

#define LOOK_NS 2500000l
#define TRIES 20

static u32 watched;

/* Called when mmap has returned, before the program can access the mapping. */
void has_mapped(const struct state *state, const u64 *arguments, s64 result) {
	u64 least = session->watch_from;
	if (watched || !least || arguments[1] < least || failed(result) || (arguments[3] & MAP_ANONYMOUS))
		return;
	/* Programs and libraries are sampled only with WATCH_ALL. */
	if (least != WATCH_ALL && (arguments[2] & PROT_EXEC || arguments[3] & MAP_DENYWRITE))
		return;
	enum answer answer = ask_recorder(&session->watch_asking, state->owner, &session->watch_from, TRIES, TRIES, LOOK_NS);
	/* If the recorder has not answered, the process makes no further request. */
	if (answer == NO_ANSWER || (answer == ANSWERED && __atomic_load_n(&session->watch_begun, __ATOMIC_ACQUIRE) == state->owner))
		watched = 1;
}
