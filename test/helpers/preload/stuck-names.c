/*
 * Preloaded into a process (LD_PRELOAD): looking up a name that begins with "dead" never ends, as with a name server that does not
 * answer; one that begins with "fine" is 127.0.0.1.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <netdb.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints, struct addrinfo **result) {
  static int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **);
  if (real == NULL) real = (int (*)(const char *, const char *, const struct addrinfo *, struct addrinfo **))dlsym(RTLD_NEXT, "getaddrinfo");
  while (name != NULL && strncmp(name, "dead", 4) == 0) pause();
  return real(name != NULL && strncmp(name, "fine", 4) == 0 ? "127.0.0.1" : name, service, hints, result);
}
