/* Page faults in mapped files: the recorder samples them, from before the first touch if it is asked in time. A part of record.c, kept
 * apart for reading.
 *
 * A process that has mapped a large file says so in the header, one at a time, and waits until the recorder has begun to watch it; not
 * for longer than a moment, since the recorder may be gone. A child inherits being watched with the memory that says so. */

#define FUTEX_WAIT 0
#define FUTEX_WAKE 1
#define WAIT_NS 50000000l
#define TRIES 20

static u32 watched;

static void ask_to_be_watched(const struct state *state)
{
	u32 *asking = &session->watch_asking;
	struct { long seconds, ns; } moment = {0, WAIT_NS / TRIES};
	u32 nobody = 0, me = state->owner;
	for (u32 tries = 0; !__atomic_compare_exchange_n(asking, &nobody, me, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE); tries++) {
		if (tries == TRIES)
			return;
		kernel(SYS_futex, (long)asking, FUTEX_WAIT, nobody, (long)&moment, 0, 0);
		nobody = 0;
	}
	kernel3(SYS_futex, asking, FUTEX_WAKE, 1);
	for (u32 tries = 0; __atomic_load_n(asking, __ATOMIC_ACQUIRE) == me; tries++) {
		u32 still = me;
		if (tries == TRIES) {
			/* Nobody answers: not to be asked again. */
			__atomic_compare_exchange_n(asking, &still, 0, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
			watched = 1;
			return;
		}
		kernel(SYS_futex, (long)asking, FUTEX_WAIT, me, (long)&moment, 0, 0);
	}
	if (__atomic_load_n(&session->watch_begun, __ATOMIC_ACQUIRE) == me)
		watched = 1;
}

/* mmap has returned, and nothing has been touched in the map. */
static void has_mapped(const struct state *state, const u64 *arguments, s64 result)
{
	u64 least = session->watch_from;
	if (watched || !least || arguments[1] < least || failed(result) || (arguments[3] & MAP_ANONYMOUS))
		return;
	/* From one byte on: programs and libraries too. */
	if (least == WATCH_ALL || (!(arguments[2] & PROT_EXEC) && !(arguments[3] & MAP_DENYWRITE)))
		ask_to_be_watched(state);
}
