/* Lets each sync of the disk take as long as it does on another one: loaded before the C library
 * (`documents/syncing.py`). What is synced is on disk all the same, only later.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>

typedef int (*sync_function)(int);

static int synced(const char *name, int file) {
    struct timespec began, now, left;
    clock_gettime(CLOCK_MONOTONIC, &began);
    const int result = ((sync_function)dlsym(RTLD_NEXT, name))(file);
    clock_gettime(CLOCK_MONOTONIC, &now);
    const char *said = getenv("PALIO_BENCH_SYNC_MS");
    const double wanted = said == NULL ? 0.0 : atof(said) * 1e6;
    const double took = (now.tv_sec - began.tv_sec) * 1e9 + (now.tv_nsec - began.tv_nsec);
    if (took < wanted) {
        left.tv_sec = (time_t)((wanted - took) / 1e9);
        left.tv_nsec = (long)(wanted - took - left.tv_sec * 1e9);
        nanosleep(&left, NULL);
    }
    return result;
}

int fsync(int file) { return synced("fsync", file); }
int fdatasync(int file) { return synced("fdatasync", file); }
