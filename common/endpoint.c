/* SPDX-License-Identifier: Apache-2.0 */
#include "endpoint.h"

#include <arpa/inet.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "status.h"

#define IPC_PATH_MAX 107 /* bytes; sockaddr_un has 108 with the terminator */
#define PORT_MAX     65535

static const char *const ipc_name[] = {"control", "instructions", "reports"};

static int fail (int status, char *why, size_t why_size, const char *format, ...)
    __attribute__ ((format (printf, 4, 5)));
static int fail (int status, char *why, size_t why_size, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  if (why_size > 0)
    vsnprintf (why, why_size, format, args);
  va_end (args);
  return status;
}

static int ipc_endpoint (const char *directory, weft_endpoint_t which, char *out, char *why, size_t why_size)
{
  size_t size = strlen (directory);
  while (size > 1 && directory[size - 1] == '/')
    size--;
  /* Absolute, because the controller that is started in the background has
   * another working directory; no abstract name, because that has no owner. */
  if (directory[0] != '/')
    return fail (WEFT_E_MALFORMED, why, why_size, "'ipc://%.80s' is no absolute directory", directory);
  /* All three must fit, or the address fails only half-way. */
  size_t longest = size + 1 + strlen (ipc_name[WEFT_ENDPOINT_INSTRUCTIONS]);
  if (longest > IPC_PATH_MAX)
    return fail (WEFT_E_RANGE, why, why_size,
                 "directory of %zu bytes is too long for a socket (%zu at most); set WEFT_CONTROLLER to a "
                 "shorter one",
                 size, size - (longest - IPC_PATH_MAX));
  snprintf (out, WEFT_ENDPOINT_MAX, "ipc://%.*s/%s", (int) size, directory, ipc_name[which]);
  return 0;
}

/* -1: no decimal number up to PORT_MAX. */
static int port_value (const char *text)
{
  int port = 0;
  if (*text == 0)
    return -1;
  for (; *text; text++) {
    if (*text < '0' || *text > '9')
      return -1;
    port = port * 10 + (*text - '0');
    if (port > PORT_MAX)
      return -1;
  }
  return port;
}

static int tcp_endpoint (const char *rest, weft_endpoint_t which, char *out, char *why, size_t why_size)
{
  const char *colon = strrchr (rest, ':');
  size_t host = colon ? (size_t) (colon - rest) : 0;
  int port = colon ? port_value (colon + 1) : -1;
  int bracketed = host > 2 && rest[0] == '[' && rest[host - 1] == ']';

  if (host == 0 || strpbrk (rest, "/ ") || (!bracketed && memchr (rest, ':', host)))
    return fail (WEFT_E_MALFORMED, why, why_size, "'tcp://%.80s' is no tcp://HOST:PORT", rest);
  if (port < 1 || port > PORT_MAX - 2)
    return fail (WEFT_E_RANGE, why, why_size,
                 "port in 'tcp://%.80s' is not in 1-%d (the next two are used too)", rest, PORT_MAX - 2);
  int size = snprintf (out, WEFT_ENDPOINT_MAX, "tcp://%.*s:%d", (int) host, rest, port + (int) which);
  return size > 0 ? 0 : WEFT_E_MALFORMED;
}

int weft_endpoint (const char *base, weft_endpoint_t which, char out[WEFT_ENDPOINT_MAX], char *why,
                   size_t why_size)
{
  if (strnlen (base, WEFT_ENDPOINT_MAX - 8) == WEFT_ENDPOINT_MAX - 8)
    return fail (WEFT_E_RANGE, why, why_size, "address longer than %d bytes", WEFT_ENDPOINT_MAX - 9);
  if (strncmp (base, "ipc://", 6) == 0)
    return ipc_endpoint (base + 6, which, out, why, why_size);
  if (strncmp (base, "tcp://", 6) == 0)
    return tcp_endpoint (base + 6, which, out, why, why_size);
  return fail (WEFT_E_MALFORMED, why, why_size, "'%.80s' is neither ipc://DIRECTORY nor tcp://HOST:PORT",
               base);
}

int weft_endpoint_default (char out[WEFT_ENDPOINT_MAX])
{
  char base[WEFT_ENDPOINT_MAX], directory[64], unused[WEFT_ENDPOINT_MAX];
  const char *given = getenv ("WEFT_CONTROLLER");
  const char *runtime = getenv ("XDG_RUNTIME_DIR");
  struct stat st;
  int size;

  snprintf (directory, sizeof (directory), "/run/user/%u", (unsigned) getuid ());
  if (given && *given)
    size = snprintf (base, sizeof (base), "%s", given);
  else if (runtime && runtime[0] == '/')
    size = snprintf (base, sizeof (base), "ipc://%s/weft", runtime);
  else if (stat (directory, &st) == 0 && S_ISDIR (st.st_mode))
    size = snprintf (base, sizeof (base), "ipc://%s/weft", directory);
  else
    size = snprintf (base, sizeof (base), "ipc:///tmp/weft-%u", (unsigned) getuid ());
  if (size < 0 || (size_t) size >= sizeof (base))
    return WEFT_E_RANGE;
  int status = weft_endpoint (base, WEFT_ENDPOINT_INSTRUCTIONS, unused, NULL, 0);
  if (status == 0)
    memcpy (out, base, (size_t) size + 1);
  return status;
}

const char *weft_endpoint_directory (const char *base)
{
  return strncmp (base, "ipc://", 6) == 0 ? base + 6 : NULL;
}

int weft_endpoint_is_loopback (const char *base)
{
  char host[64];
  if (strncmp (base, "tcp://", 6) != 0)
    return 0;
  const char *from = base + 6, *colon = strrchr (from, ':');
  if (!colon || (size_t) (colon - from) >= sizeof host)
    return 0;
  memcpy (host, from, (size_t) (colon - from));
  host[colon - from] = 0;
  struct in_addr four;
  if (inet_pton (AF_INET, host, &four) == 1)
    return (ntohl (four.s_addr) >> 24) == 127;
  return strcmp (host, "[::1]") == 0 || strcmp (host, "localhost") == 0;
}
