/* Preloaded as an empty library: what loading any library into every process costs. */
int nothing_at_all;
