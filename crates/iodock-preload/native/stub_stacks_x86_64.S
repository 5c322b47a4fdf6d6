/* The stub that also records the callers of calls (record --stacks). It is a separate copy, so that the other
 * stub needs no check of the option. */

#define STACKS
#define PLAIN iodock_plain_stacks
#include "stub_x86_64.S"
