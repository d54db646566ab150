/* Remembers what was put on disk, below Python and SQLite, and ends the process at a chosen operation.
 *
 * Loaded by LD_PRELOAD. Operations on files below POWER_ROOT are counted in POWER_OUT/operations; number POWER_AT ends the
 * process before it happens. fsync and fdatasync copy a file to POWER_OUT/file.INODE, and the entries of a folder to
 * POWER_OUT/folder.INODE: what is there survives, everything else may or may not. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const char *root, *out;
static long at;
static volatile long *operations;

static ssize_t (*real_write)(int, const void *, size_t);
static ssize_t (*real_pwrite)(int, const void *, size_t, off_t);
static int (*real_ftruncate)(int, off_t);
static int (*real_rename)(const char *, const char *);
static int (*real_unlink)(const char *);

__attribute__((constructor)) static void begin(void) {
    root = getenv("POWER_ROOT");
    out = getenv("POWER_OUT");
    at = atol(getenv("POWER_AT") ? getenv("POWER_AT") : "0");
    real_write = dlsym(RTLD_NEXT, "write");
    real_pwrite = dlsym(RTLD_NEXT, "pwrite64");
    real_ftruncate = dlsym(RTLD_NEXT, "ftruncate64");
    real_rename = dlsym(RTLD_NEXT, "rename");
    real_unlink = dlsym(RTLD_NEXT, "unlink");
    if (!root || !out) return;
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/operations", out);
    int file = open(path, O_RDWR | O_CREAT, 0600);
    if (file < 0 || real_ftruncate(file, sizeof(long))) _exit(98);
    operations = mmap(NULL, sizeof(long), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (operations == MAP_FAILED) _exit(98);
    close(file);
}

static int ours(const char *path) { return root && operations && strncmp(path, root, strlen(root)) == 0; }

static int of_ours(int file) {
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t size = readlink(link, path, sizeof path - 1);
    if (size <= 0) return 0;
    path[size] = 0;
    return ours(path);
}

static void step(void) {
    if (__sync_add_and_fetch(operations, 1) == at) _exit(99);
}

static void keep_file(int file, ino_t inode) {
    char part[PATH_MAX], whole[PATH_MAX], block[65536], source[64];
    snprintf(part, sizeof part, "%s/part", out);
    snprintf(whole, sizeof whole, "%s/file.%lu", out, (unsigned long)inode);
    snprintf(source, sizeof source, "/proc/self/fd/%d", file);
    int from = open(source, O_RDONLY), to = open(part, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    ssize_t size;
    if (from < 0 || to < 0) _exit(98);
    while ((size = read(from, block, sizeof block)) > 0)
        if (real_write(to, block, size) != size) _exit(98);
    close(from);
    close(to);
    real_rename(part, whole);
}

static void keep_folder(int file, ino_t inode) {
    char part[PATH_MAX], whole[PATH_MAX], source[64];
    snprintf(part, sizeof part, "%s/part", out);
    snprintf(whole, sizeof whole, "%s/folder.%lu", out, (unsigned long)inode);
    snprintf(source, sizeof source, "/proc/self/fd/%d", file);
    DIR *entries = opendir(source);
    FILE *to = fopen(part, "w");
    struct dirent *entry;
    if (!entries || !to) _exit(98);
    while ((entry = readdir(entries)))
        if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, ".."))
            fprintf(to, "%lu %s\n", (unsigned long)entry->d_ino, entry->d_name);
    fclose(to);
    closedir(entries);
    real_rename(part, whole);
}

static int keep(int file) {
    struct stat status;
    if (!of_ours(file)) return 0;
    pthread_mutex_lock(&lock);
    step();
    if (fstat(file, &status)) _exit(98);
    if (S_ISDIR(status.st_mode)) keep_folder(file, status.st_ino);
    else keep_file(file, status.st_ino);
    pthread_mutex_unlock(&lock);
    return 0;
}

int fsync(int file) { return keep(file); }
int fdatasync(int file) { return keep(file); }

ssize_t write(int file, const void *block, size_t size) {
    if (of_ours(file)) step();
    return real_write(file, block, size);
}
ssize_t pwrite64(int file, const void *block, size_t size, off_t place) {
    if (of_ours(file)) step();
    return real_pwrite(file, block, size, place);
}
ssize_t pwrite(int file, const void *block, size_t size, off_t place) { return pwrite64(file, block, size, place); }
int ftruncate64(int file, off_t size) {
    if (of_ours(file)) step();
    return real_ftruncate(file, size);
}
int ftruncate(int file, off_t size) { return ftruncate64(file, size); }
int rename(const char *from, const char *to) {
    if (ours(to)) step();
    return real_rename(from, to);
}
int unlink(const char *path) {
    if (ours(path)) step();
    return real_unlink(path);
}
