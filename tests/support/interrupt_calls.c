/* Preloaded before the C library: the n-th call that reaches the file system ends the process, or fails.
 *
 * interrupt_at(0, ...) lets everything pass; interrupt_count() says how many calls there were since then. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

enum { PASS = 0, KILL = 1, FAIL_ONCE = 2, FULL_FROM_HERE_ON = 3 };

static int armed, mode, error_number;
static long at, count;

void interrupt_at(long call, int what, int number)
{
    at = call;
    mode = what;
    error_number = number;
    count = 0;
    armed = 1;
}

long interrupt_count(void)
{
    armed = 0;
    return count;
}

/* Whether this call fails. A full disk fails those that need room. */
static int interrupted(int needs_room)
{
    if (!armed) {
        return 0;
    }
    ++count;
    if (mode == KILL && count == at) {
        raise(SIGKILL);
    }
    if ((mode == FAIL_ONCE && count == at) || (mode == FULL_FROM_HERE_ON && count >= at && needs_room)) {
        errno = error_number;
        return 1;
    }
    return 0;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define INTERPOSE(result, name, parameters, arguments, needs_room) \
    result name parameters \
    { \
        if (interrupted(needs_room)) { \
            return -1; \
        } \
        return REAL(name) arguments; \
    }

INTERPOSE(int, rename, (const char *from, const char *to), (from, to), 0)
INTERPOSE(int, renameat, (int a, const char *from, int b, const char *to), (a, from, b, to), 0)
INTERPOSE(int, renameat2, (int a, const char *from, int b, const char *to, unsigned f), (a, from, b, to, f), 0)
INTERPOSE(int, link, (const char *from, const char *to), (from, to), 1)
INTERPOSE(int, linkat, (int a, const char *from, int b, const char *to, int f), (a, from, b, to, f), 1)
INTERPOSE(int, symlink, (const char *from, const char *to), (from, to), 1)
INTERPOSE(int, unlink, (const char *path), (path), 0)
INTERPOSE(int, unlinkat, (int a, const char *path, int f), (a, path, f), 0)
INTERPOSE(int, rmdir, (const char *path), (path), 0)
INTERPOSE(int, mkdir, (const char *path, mode_t m), (path, m), 1)
INTERPOSE(int, mkdirat, (int a, const char *path, mode_t m), (a, path, m), 1)
INTERPOSE(int, chmod, (const char *path, mode_t m), (path, m), 0)
INTERPOSE(int, fchmod, (int file, mode_t m), (file, m), 0)
INTERPOSE(int, fchmodat, (int a, const char *path, mode_t m, int f), (a, path, m, f), 0)
INTERPOSE(int, fsync, (int file), (file), 1)
INTERPOSE(int, ftruncate64, (int file, off64_t size), (file, size), 0)
INTERPOSE(ssize_t, copy_file_range,
          (int in, off64_t *from, int out, off64_t *to, size_t size, unsigned f), (in, from, out, to, size, f), 1)

/* Half of what is written arrives first. */
ssize_t write(int file, const void *bytes, size_t size)
{
    if (armed && (count + 1 == at || (mode == FULL_FROM_HERE_ON && count + 1 >= at)) && size > 1) {
        (void)REAL(write)(file, bytes, size / 2);
    }
    if (interrupted(1)) {
        return -1;
    }
    return REAL(write)(file, bytes, size);
}

/* The file is closed all the same, as Linux does it. */
int close(int file)
{
    const int fails = interrupted(0);
    const int status = REAL(close)(file);

    if (fails) {
        errno = error_number;
    }
    return fails ? -1 : status;
}

#define INTERPOSE_OPEN(name) \
    int name(const char *path, int flags, ...) \
    { \
        va_list arguments; \
        va_start(arguments, flags); \
        const mode_t permissions = (flags & O_CREAT) != 0 ? va_arg(arguments, mode_t) : 0; \
        va_end(arguments); \
        if (interrupted((flags & O_CREAT) != 0)) { \
            return -1; \
        } \
        return REAL(name)(path, flags, permissions); \
    }

INTERPOSE_OPEN(open)
INTERPOSE_OPEN(open64)

int openat(int folder, const char *path, int flags, ...)
{
    va_list arguments;
    va_start(arguments, flags);
    const mode_t permissions = (flags & O_CREAT) != 0 ? va_arg(arguments, mode_t) : 0;
    va_end(arguments);
    if (interrupted((flags & O_CREAT) != 0)) {
        return -1;
    }
    return REAL(openat)(folder, path, flags, permissions);
}
