/* SPDX-License-Identifier: Apache-2.0 */
/* socket_names: the active half of the calls that look names up. */
#include <netdb.h>

#include "reach.h"
#include "socket_hooks.h"

static int before (const char *node, int flags, probe_reach_t *ret_reach)
{
  if (probe_inside)
    return 0;
  probe_enter ();
  int wanted = probe_reach_lookup (node, flags, ret_reach);
  probe_leave ();
  return wanted;
}

static void after (const probe_reach_t *reach, int again)
{
  probe_enter ();
  probe_reach_looked_up (reach, again);
  probe_leave ();
}

int probe_active_getaddrinfo (const char *node, const char *service, const struct addrinfo *hints,
                              struct addrinfo **ret_list)
{
  probe_reach_t reach;
  if (!before (node, hints ? hints->ai_flags : 0, &reach))
    return probe_real.getaddrinfo (node, service, hints, ret_list);
  int result = probe_real.getaddrinfo (node, service, hints, ret_list);
  after (&reach, result == EAI_AGAIN);
  return result;
}

struct hostent *probe_active_gethostbyname (const char *node)
{
  probe_reach_t reach;
  if (!before (node, 0, &reach))
    return probe_real.gethostbyname (node);
  struct hostent *result = probe_real.gethostbyname (node);
  after (&reach, !result && h_errno == TRY_AGAIN);
  return result;
}

struct hostent *probe_active_gethostbyname2 (const char *node, int family)
{
  probe_reach_t reach;
  if (!before (node, 0, &reach))
    return probe_real.gethostbyname2 (node, family);
  struct hostent *result = probe_real.gethostbyname2 (node, family);
  after (&reach, !result && h_errno == TRY_AGAIN);
  return result;
}

int probe_active_gethostbyname_r (const char *node, struct hostent *ret_host, char *data, size_t size,
                                  struct hostent **ret_result, int *ret_error)
{
  probe_reach_t reach;
  if (!before (node, 0, &reach))
    return probe_real.gethostbyname_r (node, ret_host, data, size, ret_result, ret_error);
  int result = probe_real.gethostbyname_r (node, ret_host, data, size, ret_result, ret_error);
  after (&reach, result && ret_error && *ret_error == TRY_AGAIN);
  return result;
}

int probe_active_gethostbyname2_r (const char *node, int family, struct hostent *ret_host, char *data,
                                   size_t size, struct hostent **ret_result, int *ret_error)
{
  probe_reach_t reach;
  if (!before (node, 0, &reach))
    return probe_real.gethostbyname2_r (node, family, ret_host, data, size, ret_result, ret_error);
  int result = probe_real.gethostbyname2_r (node, family, ret_host, data, size, ret_result, ret_error);
  after (&reach, result && ret_error && *ret_error == TRY_AGAIN);
  return result;
}
