/* Preloaded into a process (LD_PRELOAD), fails one fdatasync with EIO: the first one after the file that FAIL_ONE_SYNC names is there. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

int fdatasync(int fd) {
  static int (*real)(int);
  if (real == NULL) real = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
  const char *order = getenv("FAIL_ONE_SYNC");
  /* Whoever removes the order carries it out. */
  if (order != NULL && unlink(order) == 0) {
    errno = EIO;
    return -1;
  }
  return real(fd);
}
