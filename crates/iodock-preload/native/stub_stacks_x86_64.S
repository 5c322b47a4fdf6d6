/* The stub that also sees where calls come from (record --stacks): a second one, so that the first need not ask whether to. */

#define STACKS
#define PLAIN iodock_plain_stacks
#include "stub_x86_64.S"
