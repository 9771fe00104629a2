/* SPDX-License-Identifier: Apache-2.0 */
#include "place.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../common/status.h"
#include "../../common/wire.h"

static const char *const socket_names[] = {"control", "instructions", "reports"};

const char *ctl_place_ipc_dir (const char *address)
{
  return weft_endpoint_directory (address);
}

int ctl_place_check (const char *address, int beyond, char *why, size_t why_size)
{
  for (int which = WEFT_ENDPOINT_CONTROL; which <= WEFT_ENDPOINT_REPORTS; which++) {
    char endpoint[WEFT_ENDPOINT_MAX];
    int rc = weft_endpoint (address, (weft_endpoint_t) which, endpoint, why, why_size);
    if (rc < 0)
      return rc;
  }
  if (!beyond && !ctl_place_ipc_dir (address) && !weft_endpoint_is_loopback (address)) {
    snprintf (why, why_size,
              "plain tcp beyond this host would let anyone instruct its VMs; make keys with `weft keys DIR` "
              "and give --keys DIR, or use a loopback address");
    return WEFT_E_DENIED;
  }
  return 0;
}

static int make_dir (const char *dir, unsigned how)
{
  char path[512];
  if ((size_t) snprintf (path, sizeof path, "%s", dir) >= sizeof path) {
    errno = ENAMETOOLONG;
    return -1;
  }
  for (char *slash = path + 1; (how & CTL_PLACE_PARENTS) && (slash = strchr (slash, '/')); slash++) {
    *slash = 0;
    if (mkdir (path, 0700) < 0 && errno != EEXIST)
      return -1;
    *slash = '/';
  }
  return mkdir (path, 0700) < 0 && errno != EEXIST ? -1 : 0;
}

/* P1 */
static int check_dir (const char *dir, unsigned how, char *why, size_t why_size)
{
  struct stat st;
  if (lstat (dir, &st) < 0) {
    snprintf (why, why_size, "%s: %s", dir, strerror (errno));
    return WEFT_E_IO;
  }
  if (!S_ISDIR (st.st_mode)) {
    snprintf (why, why_size, "%s is no directory; choose another place", dir);
    return WEFT_E_DENIED;
  }
  if (st.st_uid != geteuid ()) {
    snprintf (why, why_size, "%s belongs to another user (uid %u); choose a directory of your own", dir,
              (unsigned) st.st_uid);
    return WEFT_E_DENIED;
  }
  if ((how & CTL_PLACE_PRIVATE) && (st.st_mode & 077)) {
    snprintf (why, why_size, "%s is open to others (mode %04o); run chmod 700 on it, or choose another place",
              dir, (unsigned) (st.st_mode & 07777));
    return WEFT_E_DENIED;
  }
  return 0;
}

static long read_pid (int fd)
{
  char text[24] = "";
  ssize_t size = pread (fd, text, sizeof text - 1, 0);
  return size > 0 ? strtol (text, NULL, 10) : 0;
}

int ctl_place_claim (const char *dir, unsigned how, int *ret_lock_fd, long *ret_pid, char *why,
                     size_t why_size)
{
  if (make_dir (dir, how) < 0) {
    snprintf (why, why_size, "%s cannot be made: %s; choose another place", dir, strerror (errno));
    return errno == EACCES ? WEFT_E_DENIED : WEFT_E_IO;
  }
  int rc = check_dir (dir, how, why, why_size);
  if (rc < 0)
    return rc;
  char path[512];
  if ((size_t) snprintf (path, sizeof path, "%s/lock", dir) >= sizeof path)
    return WEFT_E_RANGE;
  int fd = open (path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) {
    snprintf (why, why_size, "%s: %s", path, strerror (errno));
    return WEFT_E_IO;
  }
  if (flock (fd, LOCK_EX | LOCK_NB) < 0) {
    *ret_pid = read_pid (fd);
    snprintf (why, why_size, "a controller (pid %ld) is already there", *ret_pid);
    close (fd);
    return WEFT_E_BUSY;
  }
  char text[24];
  int size = snprintf (text, sizeof text, "%ld\n", (long) getpid ());
  if (ftruncate (fd, 0) < 0 || pwrite (fd, text, (size_t) size, 0) != size) {
    snprintf (why, why_size, "%s: %s", path, strerror (errno));
    close (fd);
    return WEFT_E_IO;
  }
  *ret_lock_fd = fd;
  return 0;
}

void ctl_place_sweep (const char *dir)
{
  for (size_t n = 0; n < sizeof socket_names / sizeof *socket_names; n++) {
    char path[512];
    if ((size_t) snprintf (path, sizeof path, "%s/%s", dir, socket_names[n]) < sizeof path)
      unlink (path);
  }
}

int ctl_place_state_dir (char *out, size_t size)
{
  const char *state = getenv ("XDG_STATE_HOME");
  if (state && *state == '/')
    return (size_t) snprintf (out, size, "%s/weft", state) < size ? 0 : WEFT_E_RANGE;
  const char *home = getenv ("HOME");
  if (!home || *home != '/') {
    const struct passwd *entry = getpwuid (geteuid ());
    home = entry ? entry->pw_dir : NULL;
  }
  if (!home || *home != '/')
    return WEFT_E_NOT_FOUND;
  return (size_t) snprintf (out, size, "%s/.local/state/weft", home) < size ? 0 : WEFT_E_RANGE;
}
