/* Preloaded into a process (LD_PRELOAD), gives it no names in the abstract namespace of Unix sockets, as a security module can. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

int bind(int fd, const struct sockaddr *address, socklen_t length) {
  static int (*real)(int, const struct sockaddr *, socklen_t);
  if (real == NULL) real = (int (*)(int, const struct sockaddr *, socklen_t))dlsym(RTLD_NEXT, "bind");
  if (address->sa_family == AF_UNIX && length > offsetof(struct sockaddr_un, sun_path) &&
      ((const struct sockaddr_un *)address)->sun_path[0] == 0) {
    errno = EACCES;
    return -1;
  }
  return real(fd, address, length);
}
