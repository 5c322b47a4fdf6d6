/*
 * A SPANK plugin: at the end of a job step it writes what the step's processes read and wrote on this node, as the
 * kernel counted it, to a small file for iodock-agent. Installing it: docs/how-to/agent.md. What is counted, and
 * what is not seen: docs/explanation/step-totals.md.
 *
 * slurmstepd starts a step's tasks and waits for them. The kernel adds to a process what the children did that it has
 * waited for (proc_pid_io(5)), so that at the step's end slurmstepd's counters hold the sum, however short the
 * processes were. As "subreaper" (prctl(2)) it also gets those whose parent ended before them.
 *
 * It must never harm a job: every function returns success, every error is a line in slurmd's log, nothing waits
 * for a disk (the folder is on a tmpfs), and nothing is allocated but two pages with digest=yes.
 *
 *   gcc -O2 -Wall -shared -fPIC -o iodock_step.so iodock_step.c
 *   plugstack.conf:  optional /usr/lib/slurm/iodock_step.so
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <sys/types.h>
#include <slurm/slurm.h>
#include <slurm/spank.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

SPANK_PLUGIN(iodock_step, 1);

#define FOLDER "/run/iodock-steps"
/* Without an agent, nothing removes the records, so at this number the plugin stops writing. */
#define MOST_RECORDS 4096
/* Maximum number of slurmstepd's threads whose counters the plugin remembers. */
#define MOST_THREADS 256
/* Time in ms that processes have to end after Slurm has signalled them at the step's end. */
#define PATIENCE_MS 500
#define PAUSE_MS 10
/* Maximum depth of the tree of processes that the plugin follows. */
#define DEEPEST 64
#define PATH_BYTES 96

/* Names of the lines of /proc/PID/io. */
static const char *const NAMES[] = {
	"rchar", "wchar", "syscr", "syscw", "read_bytes", "write_bytes", "cancelled_write_bytes",
};
#define FIELDS (sizeof(NAMES) / sizeof(NAMES[0]))

typedef struct {
	uint64_t value[FIELDS];
} counters_t;

/* Indexes of NAMES. */
enum { READ_BYTES, READ_CALLS = 2 };

typedef struct {
	long number;
	counters_t last;
} worker_t;

#define OUTPUT_BYTES 4096

/* Facts that only the batch script's task can find out. */
typedef struct {
	/* Path of the task's standard output. */
	char output[OUTPUT_BYTES];
	/* Number of times that Slurm has started the job again. */
	uint32_t restarts;
} noted_t;

/* State of this slurmstepd, which has one step. Its main thread calls the hooks. */
static struct {
	bool is_begun, tells_epilog;
	uint32_t job, step, array, task;
	uid_t user;
	gid_t group;
	int64_t began;
	/* Counters that slurmstepd had from earlier children when the step began. */
	counters_t before;
	worker_t workers[MOST_THREADS];
	size_t worker_count;
	/* Counters of ended threads whose numbers belong to other threads now. */
	counters_t ended;
	/* Bytes and calls of the plugin's own reads by read_text, which the kernel counts for the main
	 * thread. */
	counters_t looked;
	/* A page that slurmstepd shares with the task. */
	noted_t *noted;
} state;

static void add(counters_t *sum, const counters_t *more)
{
	for (size_t at = 0; at < FIELDS; at++)
		sum->value[at] += more->value[at];
}

static void subtract(counters_t *sum, const counters_t *less)
{
	for (size_t at = 0; at < FIELDS; at++)
		sum->value[at] -= less->value[at] < sum->value[at] ? less->value[at] : sum->value[at];
}

/* Returns the time in ns since the epoch. */
static int64_t now(void)
{
	struct timespec time = {0};

	clock_gettime(CLOCK_REALTIME, &time);
	return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

/* Reads the beginning of a file of /proc as text. */
static bool read_text(const char *path, char *text, size_t room)
{
	int file = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t length;

	if (file < 0)
		return false;
	do {
		length = read(file, text, room - 1);
		state.looked.value[READ_CALLS]++;
	} while (length < 0 && errno == EINTR);
	close(file);
	if (length < 0)
		return false;
	text[length] = '\0';
	state.looked.value[READ_BYTES] += (uint64_t)length;
	return true;
}

/* Reads /proc/PID/io or /proc/PID/task/TID/io. Returns false if it cannot be read, or lacks a
 * line. */
static bool read_counters(const char *path, counters_t *counters)
{
	char text[1024];
	size_t found = 0;

	if (!read_text(path, text, sizeof(text)))
		return false;
	for (char *line = text, *end; (end = strchr(line, '\n')); line = end + 1) {
		for (size_t at = 0; at < FIELDS; at++) {
			size_t length = strlen(NAMES[at]);

			if (strncmp(line, NAMES[at], length) == 0 && line[length] == ':') {
				counters->value[at] = strtoull(line + length + 1, NULL, 10);
				found++;
			}
		}
	}
	return found == FIELDS;
}

static void note_worker(long number, const counters_t *counters)
{
	worker_t *worker = state.workers;
	worker_t *end = worker + state.worker_count;

	while (worker < end && worker->number != number)
		worker++;
	if (worker == end) {
		if (state.worker_count == MOST_THREADS)
			return;
		state.worker_count++;
		worker->number = number;
	} else if (counters->value[0] < worker->last.value[0]) {
		add(&state.ended, &worker->last);
	}
	worker->last = *counters;
}

/* Returns what slurmstepd's own threads did, as far as this plugin saw it: they copy the output,
 * which does not belong to the step. For a thread that has ended, the last counters seen count.
 * For the calling thread, reads of this plugin after LOOKED are left out. */
static counters_t own(counters_t looked)
{
	counters_t sum = state.ended, one, since;
	long this = syscall(SYS_gettid);
	char path[PATH_BYTES];
	struct dirent *entry;
	DIR *folder = opendir("/proc/self/task");

	while (folder && (entry = readdir(folder))) {
		long number = strtol(entry->d_name, NULL, 10);

		snprintf(path, sizeof(path), "/proc/self/task/%ld/io", number);
		since = state.looked;
		subtract(&since, &looked);
		if (number <= 0 || !read_counters(path, &one))
			continue;
		if (number == this)
			subtract(&one, &since);
		note_worker(number, &one);
	}
	if (folder)
		closedir(folder);
	for (size_t at = 0; at < state.worker_count; at++)
		add(&sum, &state.workers[at].last);
	return sum;
}

/* Returns what the kernel has added to slurmstepd's counters from children that it has waited
 * for. */
static bool taken_over(counters_t *counters)
{
	counters_t of_threads, looked = state.looked;

	/* The sum must be read first. Activity of a thread between the two reads is then subtracted too
	 * much, not too little. */
	if (!read_counters("/proc/self/io", counters))
		return false;
	of_threads = own(looked);
	subtract(counters, &of_threads);
	return true;
}

/* Adds the counters of a process's descendants that no process has waited for. Returns whether
 * one still runs. */
static bool add_children(long parent, counters_t *sum, int depth)
{
	char path[PATH_BYTES], text[65536];
	struct dirent *entry;
	bool is_running = false;
	DIR *folder;

	snprintf(path, sizeof(path), "/proc/%ld/task", parent);
	folder = depth < DEEPEST ? opendir(path) : NULL;
	while (folder && (entry = readdir(folder))) {
		long thread = strtol(entry->d_name, NULL, 10);
		char *at = text, *rest;

		snprintf(path, sizeof(path), "/proc/%ld/task/%ld/children", parent, thread);
		if (thread <= 0 || !read_text(path, text, sizeof(text)))
			continue;
		for (long child; (child = strtol(at, &rest, 10)) > 0 && rest != at; at = rest) {
			counters_t one;
			char stat[512], *state_of;

			snprintf(path, sizeof(path), "/proc/%ld/io", child);
			if (read_counters(path, &one))
				add(sum, &one);
			snprintf(path, sizeof(path), "/proc/%ld/stat", child);
			if (read_text(path, stat, sizeof(stat)) && (state_of = strrchr(stat, ')')))
				is_running |= state_of[1] && state_of[2] != 'Z' && state_of[2] != 'X';
			is_running |= add_children(child, sum, depth + 1);
		}
	}
	if (folder)
		closedir(folder);
	return is_running;
}

/* Sums up what the step's processes did. Returns false if the counters cannot be read. */
static bool step_total(counters_t *total)
{
	const struct timespec pause = {0, PAUSE_MS * 1000000};
	counters_t children;
	bool is_running = true;

	for (int waited = 0; is_running && waited < PATIENCE_MS; waited += PAUSE_MS) {
		memset(&children, 0, sizeof(children));
		is_running = add_children(getpid(), &children, 0);
		if (is_running)
			nanosleep(&pause, NULL);
	}
	if (is_running)
		slurm_info("iodock: processes of step %u.%u still run; what they do from now on is not counted",
			   state.job, state.step);
	if (!taken_over(total))
		return false;
	subtract(total, &state.before);
	add(total, &children);
	return true;
}

/* Opens the folder, which only root may own and access. */
static int open_folder(void)
{
	struct stat status;
	int folder;

	if (mkdir(FOLDER, 0700) < 0 && errno != EEXIST) {
		slurm_error("iodock: %s can't be made: %s", FOLDER, strerror(errno));
		return -1;
	}
	folder = open(FOLDER, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (folder < 0 || fstat(folder, &status) < 0) {
		slurm_error("iodock: %s can't be opened: %s", FOLDER, strerror(errno));
	} else if (status.st_uid != 0 || (status.st_mode & 0077)) {
		slurm_error("iodock: %s must be root's with mode 0700; nothing is written", FOLDER);
	} else {
		return folder;
	}
	if (folder >= 0)
		close(folder);
	return -1;
}

static bool has_room(int folder)
{
	size_t count = 0;
	int copy = dup(folder);
	DIR *entries = copy < 0 ? NULL : fdopendir(copy);

	if (!entries) {
		if (copy >= 0)
			close(copy);
		return false;
	}
	while (readdir(entries))
		count++;
	closedir(entries);
	if (count < MOST_RECORDS)
		return true;
	slurm_error("iodock: %s has %d records; is iodock-agent running? The total of step %u.%u is lost",
		    FOLDER, MOST_RECORDS, state.job, state.step);
	return false;
}

/* Writes the step's name in the form of cgroups and user commands. */
static void name_step(char *name, size_t room)
{
	if (state.step == SLURM_BATCH_SCRIPT)
		snprintf(name, room, "batch");
	else if (state.step == SLURM_EXTERN_CONT)
		snprintf(name, room, "extern");
#ifdef SLURM_INTERACTIVE_STEP
	else if (state.step == SLURM_INTERACTIVE_STEP)
		snprintf(name, room, "interactive");
#endif
	else
		snprintf(name, room, "%u", state.step);
}

/* Formats a record. Its last line shows that the record is complete. */
static int format_record(char *text, size_t room, const char *step, int64_t ended, const counters_t *total)
{
	int length = snprintf(text, room,
			      "iodock-step 1\njob %u\nstep %s\nuid %u\nbegan %" PRId64 "\nended %" PRId64 "\n",
			      state.job, step, (unsigned)state.user, state.began, ended);

	for (size_t at = 0; at < FIELDS && length > 0 && (size_t)length < room; at++)
		length += snprintf(text + length, room - (size_t)length, "%s: %" PRIu64 "\n", NAMES[at],
				   total->value[at]);
	if (length > 0 && (size_t)length < room)
		length += snprintf(text + length, room - (size_t)length, "end\n");
	return length > 0 && (size_t)length < room ? length : -1;
}

static bool write_record(int folder, const char *temporary, const char *text, size_t length)
{
	int file = openat(folder, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	bool is_written = file >= 0 && write(file, text, length) == (ssize_t)length;

	if (file >= 0)
		is_written &= close(file) == 0;
	return is_written;
}

/* Gives the record a second name for the epilog, because the agent may already have sent and
 * removed the first one. */
static void leave_for_epilog(int folder, const char *temporary, const char *name)
{
	char second[PATH_BYTES + 16];

	snprintf(second, sizeof(second), "%s.digest", name);
	if (linkat(folder, temporary, folder, second, 0) < 0)
		slurm_info("iodock: %s/%s can't be made: %s", FOLDER, second, strerror(errno));
}

static void leave_record(const counters_t *total)
{
	char step[24], name[PATH_BYTES], temporary[PATH_BYTES + 16], text[1024];
	int length, folder = open_folder();

	if (folder < 0)
		return;
	name_step(step, sizeof(step));
	length = format_record(text, sizeof(text), step, now(), total);
	snprintf(name, sizeof(name), "%u.%s.%" PRId64 ".step", state.job, step, state.began);
	snprintf(temporary, sizeof(temporary), ".%s.%ld", name, (long)getpid());
	if (length > 0 && has_room(folder)) {
		bool is_written = write_record(folder, temporary, text, (size_t)length);

		if (is_written && state.tells_epilog)
			leave_for_epilog(folder, temporary, name);
		if (!is_written || renameat(folder, temporary, folder, name) < 0) {
			slurm_error("iodock: %s/%s can't be written: %s", FOLDER, name, strerror(errno));
			unlinkat(folder, temporary, 0);
		}
	}
	close(folder);
}

static bool is_set(const char *option, int ac, char **av)
{
	for (int at = 0; at < ac; at++)
		if (strcmp(av[at], option) == 0)
			return true;
	return false;
}

/* Writes JOB.output for the epilog, which would otherwise have to query slurmctld. The file
 * contains the group's number, the job as users write it (1234_7), the number of restarts, the
 * time when this run began (s since the epoch), and the output's name. */
static void leave_output(void)
{
	char name[PATH_BYTES], temporary[PATH_BYTES], job[24], text[OUTPUT_BYTES + 96];
	int folder, length;

	if (!state.noted || state.noted->output[0] != '/' || (folder = open_folder()) < 0)
		return;
	snprintf(name, sizeof(name), "%u.output", state.job);
	snprintf(temporary, sizeof(temporary), ".%u.output.%ld", state.job, (long)getpid());
	snprintf(job, sizeof(job), state.array ? "%u_%u" : "%u", state.array ? state.array : state.job, state.task);
	length = snprintf(text, sizeof(text), "%u %s %u %" PRId64 " %.*s\n", (unsigned)state.group, job,
			  state.noted->restarts, state.began / 1000000000, OUTPUT_BYTES - 1, state.noted->output);
	if (has_room(folder) &&
	    (!write_record(folder, temporary, text, (size_t)length) ||
	     renameat(folder, temporary, folder, name) < 0)) {
		slurm_info("iodock: %s/%s can't be written: %s", FOLDER, name, strerror(errno));
		unlinkat(folder, temporary, 0);
	}
	close(folder);
}

/* Returns an item, or 0 if slurmstepd does not provide it. */
static uint32_t item(spank_t spank, spank_item_t which)
{
	uint32_t value = 0;

	return spank_get_item(spank, which, &value) == ESPANK_SUCCESS ? value : 0;
}

/* Returns a page shared with the tasks, or NULL if there is none; the epilog then queries
 * slurmctld. */
static noted_t *shared_page(void)
{
	void *page = mmap(NULL, sizeof(noted_t), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	return page == MAP_FAILED ? NULL : page;
}

/* Slurm calls this before the step has a process. */
int slurm_spank_init(spank_t spank, int ac, char **av)
{
	if (spank_context() != S_CTX_REMOTE)
		return ESPANK_SUCCESS;
	memset(&state, 0, sizeof(state));
	if (spank_get_item(spank, S_JOB_ID, &state.job) != ESPANK_SUCCESS ||
	    spank_get_item(spank, S_JOB_STEPID, &state.step) != ESPANK_SUCCESS ||
	    spank_get_item(spank, S_JOB_UID, &state.user) != ESPANK_SUCCESS) {
		slurm_error("iodock: slurmstepd does not say which step it has; it is not counted");
		return ESPANK_SUCCESS;
	}
	state.tells_epilog = is_set("digest=yes", ac, av);
	if (!is_set("orphans=no", ac, av) && prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
		slurm_info("iodock: processes that outlive their parent are not counted: %s", strerror(errno));
	if (state.tells_epilog && state.step == SLURM_BATCH_SCRIPT &&
	    spank_get_item(spank, S_JOB_GID, &state.group) == ESPANK_SUCCESS)
		state.noted = shared_page();
	state.array = item(spank, S_JOB_ARRAY_ID);
	state.task = item(spank, S_JOB_ARRAY_TASK_ID);
	state.began = now();
	state.is_begun = taken_over(&state.before);
	if (!state.is_begun)
		slurm_error("iodock: /proc/self/io can't be read; step %u.%u is not counted", state.job,
			    state.step);
	return ESPANK_SUCCESS;
}

/* Slurm calls this in the task, as its user, before its program begins. It stores the name of
 * the task's output and a variable of Slurm's. */
int slurm_spank_task_init(spank_t spank, int ac, char **av)
{
	(void)ac, (void)av;
	if (spank_context() == S_CTX_REMOTE && state.noted) {
		ssize_t length = readlink("/proc/self/fd/1", state.noted->output, OUTPUT_BYTES - 1);
		char count[16];

		state.noted->output[length > 0 ? length : 0] = '\0';
		/* Slurm 22.05 always returns 0 for S_SLURM_RESTART_COUNT. */
		if (spank_getenv(spank, "SLURM_RESTART_COUNT", count, sizeof(count)) == ESPANK_SUCCESS)
			state.noted->restarts = (uint32_t)strtoul(count, NULL, 10);
	}
	return ESPANK_SUCCESS;
}

/* Slurm calls this while the thread that copies output still exists and differs from the step's
 * processes. */
int slurm_spank_task_exit(spank_t spank, int ac, char **av)
{
	(void)spank, (void)ac, (void)av;
	if (spank_context() == S_CTX_REMOTE && state.is_begun)
		own(state.looked);
	return ESPANK_SUCCESS;
}

/* Slurm calls this after it has signalled the last process to end. */
int slurm_spank_exit(spank_t spank, int ac, char **av)
{
	counters_t total;

	(void)spank, (void)ac, (void)av;
	if (spank_context() != S_CTX_REMOTE || !state.is_begun)
		return ESPANK_SUCCESS;
	state.is_begun = false;
	leave_output();
	if (step_total(&total))
		leave_record(&total);
	else
		slurm_error("iodock: /proc/self/io can't be read; the total of step %u.%u is lost", state.job,
			    state.step);
	return ESPANK_SUCCESS;
}
