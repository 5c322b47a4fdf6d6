/* An empty library, which is preloaded to measure the cost of loading any library into every
 * process. */
int nothing_at_all;
