/* SPDX-License-Identifier: Apache-2.0 */
#include "keyring.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <zmq.h>

#include "../../common/limits.h"
#include "../../common/status.h"

#define ROLES     2
#define PATH_ROOM (WEFT_KEYS_DIR_MAX + 2 * WEFT_KEY_NAME_MAX + 32)
#define SUFFIX    ".pub"

static const char *const role_dir[ROLES] = {"clients", "instances"};

/* Lengths were checked where the names came in (check_length, ctl_keyring_new). */
static void path_of (char out[PATH_ROOM], const char *dir, const char *name, const char *suffix)
{
  if ((size_t) snprintf (out, PATH_ROOM, "%s/%s%s", dir, name, suffix) >= PATH_ROOM)
    *out = 0;
}

typedef struct {
  char key[WEFT_KEY_TEXT];
  char name[WEFT_KEY_NAME_MAX];
} admitted_t;

typedef struct {
  admitted_t *list;
  uint32_t count;
  struct timespec changed; /* of the directory when it was read */
  time_t read_s;
} role_t;

struct ctl_keyring_t {
  char dir[WEFT_KEYS_DIR_MAX];
  weft_key_pair_t own;
  role_t role[ROLES];
};

int ctl_keyring_name_valid (const char *name)
{
  size_t size = strlen (name);
  return size > 0 && size < WEFT_KEY_NAME_MAX && name[0] != '.' && name[0] != '-' &&
         strspn (name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-") == size;
}

/* ---- who is admitted ---------------------------------------------------- */

/* R3 */
static int is_private (const struct stat *st)
{
  return S_ISDIR (st->st_mode) && (st->st_uid == geteuid () || st->st_uid == 0) && !(st->st_mode & 022);
}

static int add_file (const char *dir, const char *file, role_t *role)
{
  char path[PATH_ROOM], why[PATH_ROOM + 200];
  weft_key_pair_t pair;
  admitted_t *one = &role->list[role->count];
  size_t size = strlen (file);
  if (size <= sizeof SUFFIX - 1 || strcmp (file + size - (sizeof SUFFIX - 1), SUFFIX) != 0)
    return 0;
  size -= sizeof SUFFIX - 1;
  if (size >= sizeof one->name)
    return 0;
  memcpy (one->name, file, size);
  one->name[size] = 0;
  if (!ctl_keyring_name_valid (one->name) ||
      (size_t) snprintf (path, sizeof path, "%s/%s", dir, file) >= sizeof path ||
      weft_keys_read (path, 0, &pair, why, sizeof why) < 0)
    return 0;
  memcpy (one->key, pair.public_key, sizeof one->key);
  role->count++;
  return 1;
}

static void read_role (ctl_keyring_t *self, ctl_role_t which, const char *dir, const struct stat *st)
{
  role_t *role = &self->role[which];
  role->count = 0;
  role->changed = st->st_mtim;
  role->read_s = time (NULL);
  DIR *open = is_private (st) ? opendir (dir) : NULL;
  if (!open)
    return;
  for (struct dirent *entry; (entry = readdir (open)) && role->count < WEFT_KEYS_MAX;)
    add_file (dir, entry->d_name, role);
  closedir (open);
}

/* R2. A directory that changed in the second in which it was read may have changed behind our back. */
static void refresh (ctl_keyring_t *self, ctl_role_t which)
{
  char dir[PATH_ROOM];
  struct stat st;
  role_t *role = &self->role[which];
  path_of (dir, self->dir, role_dir[which], "");
  if (lstat (dir, &st) < 0) {
    role->count = 0;
    role->changed = (struct timespec){0, 0};
    return;
  }
  if (st.st_mtim.tv_sec != role->changed.tv_sec || st.st_mtim.tv_nsec != role->changed.tv_nsec ||
      role->changed.tv_sec + 1 >= role->read_s || !is_private (&st))
    read_role (self, which, dir, &st);
}

int ctl_keyring_new (const char *dir, ctl_keyring_t **ret_self, char *why, size_t why_size)
{
  char path[PATH_ROOM];
  ctl_keyring_t *self = calloc (1, sizeof *self);
  int rc = self ? 0 : WEFT_E_NOMEM;
  for (int n = 0; rc == 0 && n < ROLES; n++)
    if (!(self->role[n].list = calloc (WEFT_KEYS_MAX, sizeof (admitted_t))))
      rc = WEFT_E_NOMEM;
  if (rc == 0 && (size_t) snprintf (self->dir, sizeof self->dir, "%s", dir) >= sizeof self->dir)
    rc = WEFT_E_RANGE;
  if (rc == 0) {
    path_of (path, dir, "controller", ".key");
    rc = weft_keys_read (path, 1, &self->own, why, why_size);
  }
  if (rc < 0) {
    ctl_keyring_destroy (&self);
    return rc;
  }
  *ret_self = self;
  return 0;
}

void ctl_keyring_destroy (ctl_keyring_t **self_p)
{
  ctl_keyring_t *self = *self_p;
  if (!self)
    return;
  for (int n = 0; n < ROLES; n++)
    free (self->role[n].list);
  explicit_bzero (&self->own, sizeof self->own);
  free (self);
  *self_p = NULL;
}

const weft_key_pair_t *ctl_keyring_own (const ctl_keyring_t *self)
{
  return &self->own;
}

const char *ctl_keyring_find (ctl_keyring_t *self, ctl_role_t role, const char *public_key)
{
  refresh (self, role);
  for (uint32_t n = 0; n < self->role[role].count; n++)
    if (strcmp (self->role[role].list[n].key, public_key) == 0)
      return self->role[role].list[n].name;
  return NULL;
}

/* ---- making ------------------------------------------------------------- */

typedef struct {
  ctl_keyring_made_fn *fn;
  void *arg;
  char *why;
  size_t why_size;
} maker_t;

static int make_dir (maker_t *maker, const char *dir)
{
  struct stat st;
  if ((mkdir (dir, 0700) < 0 && errno != EEXIST) || lstat (dir, &st) < 0) {
    snprintf (maker->why, maker->why_size, "%s cannot be made: %s; choose another place", dir,
              strerror (errno));
    return errno == EACCES ? WEFT_E_DENIED : WEFT_E_IO;
  }
  if (!is_private (&st)) {
    snprintf (
        maker->why, maker->why_size,
        "%s is no directory of yours alone (mode %04o, uid %u); run chmod 700 on it, or choose another place",
        dir, (unsigned) st.st_mode & 07777, (unsigned) st.st_uid);
    return WEFT_E_DENIED;
  }
  return 0;
}

/* R1: O_EXCL. 1: written; 0: it was there. */
static int write_file (maker_t *maker, const char *path, const char *what, const weft_key_pair_t *pair,
                       int secret)
{
  char text[WEFT_KEY_FILE_MAX];
  int size = snprintf (text, sizeof text, "# weft: %s\npublic %s\n", what, pair->public_key);
  if (secret)
    size += snprintf (text + size, sizeof text - (size_t) size, "secret %s\n", pair->secret_key);
  int fd = open (path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, secret ? 0600 : 0644);
  if (fd < 0 && errno == EEXIST) {
    maker->fn (path, 0, maker->arg);
    explicit_bzero (text, sizeof text);
    return 0;
  }
  int failed = fd < 0 || fchmod (fd, secret ? 0600 : 0644) < 0 || write (fd, text, (size_t) size) != size;
  explicit_bzero (text, sizeof text);
  if (fd >= 0 && (fsync (fd) < 0 || close (fd) < 0 || failed)) {
    failed = 1;
    unlink (path); /* half a key file */
  }
  if (failed) {
    snprintf (maker->why, maker->why_size, "%s cannot be written: %s; choose another place", path,
              strerror (errno));
    return WEFT_E_IO;
  }
  maker->fn (path, 1, maker->arg);
  return 1;
}

/* The pair in `dir`/`name`.key, made if it is not there. */
static int make_pair (maker_t *maker, const char *dir, const char *name, const char *what,
                      weft_key_pair_t *ret_pair)
{
  char path[PATH_ROOM];
  path_of (path, dir, name, ".key");
  if (zmq_curve_keypair (ret_pair->public_key, ret_pair->secret_key) < 0) {
    snprintf (maker->why, maker->why_size,
              "no keys can be made: this libzmq was built without CURVE; use another");
    return WEFT_E_UNSUPPORTED;
  }
  int rc = write_file (maker, path, what, ret_pair, 1);
  return rc == 0 ? weft_keys_read (path, 1, ret_pair, maker->why, maker->why_size) : rc < 0 ? rc : 0;
}

static int make_public (maker_t *maker, const char *dir, const char *name, const char *what,
                        const weft_key_pair_t *pair)
{
  char path[PATH_ROOM];
  path_of (path, dir, name, SUFFIX);
  int rc = write_file (maker, path, what, pair, 0);
  return rc < 0 ? rc : 0;
}

/* The keys of who connects, in `dir`, admitted in `root`. */
static int make_peer (maker_t *maker, const char *root, const char *dir, const char *name)
{
  static const struct {
    const char *file, *what, *public_what;
  } roles[ROLES] = {{"client", "secret key of a client: who has it may give instructions",
                     "public key of a client that may give instructions"},
                    {"instance", "secret key of instances: who has it may report",
                     "public key of instances that may report"}};
  int rc = 0;
  for (int n = 0; rc == 0 && n < ROLES; n++) {
    char admitted[PATH_ROOM];
    weft_key_pair_t pair = {{0}, {0}};
    path_of (admitted, root, role_dir[n], "");
    rc = make_dir (maker, admitted);
    if (rc == 0)
      rc = make_pair (maker, dir, roles[n].file, roles[n].what, &pair);
    if (rc == 0)
      rc = make_public (maker, admitted, name, roles[n].public_what, &pair);
    explicit_bzero (&pair, sizeof pair);
  }
  return rc;
}

static int check_length (maker_t *maker, const char *dir)
{
  if (strlen (dir) < WEFT_KEYS_DIR_MAX - WEFT_KEY_NAME_MAX - 32)
    return 0;
  snprintf (maker->why, maker->why_size, "the path is too long; choose a shorter one");
  return WEFT_E_RANGE;
}

/* A directory for somebody who connects (ctl_keyring_make_for) is no controller's: a second controller's
 * pair in it would only look right. */
static int check_controller (maker_t *maker, const char *dir)
{
  char closed[PATH_ROOM], open[PATH_ROOM];
  path_of (closed, dir, "controller", ".key");
  path_of (open, dir, "controller", SUFFIX);
  if (access (open, F_OK) < 0 || access (closed, F_OK) == 0)
    return 0;
  snprintf (
      maker->why, maker->why_size,
      "%s holds the public key of a controller elsewhere; make its keys there, or choose another directory",
      dir);
  return WEFT_E_DENIED;
}

int ctl_keyring_make (const char *dir, ctl_keyring_made_fn *fn, void *arg, char *why, size_t why_size)
{
  maker_t maker = {fn, arg, why, why_size};
  weft_key_pair_t own = {{0}, {0}};
  int rc = check_length (&maker, dir);
  if (rc == 0)
    rc = make_dir (&maker, dir);
  if (rc == 0)
    rc = check_controller (&maker, dir);
  if (rc == 0)
    rc = make_pair (&maker, dir, "controller", "secret key of the controller", &own);
  if (rc == 0)
    rc = make_public (&maker, dir, "controller", "public key of the controller", &own);
  explicit_bzero (&own, sizeof own);
  return rc == 0 ? make_peer (&maker, dir, dir, "local") : rc;
}

int ctl_keyring_make_for (const char *dir, const char *name, ctl_keyring_made_fn *fn, void *arg, char *why,
                          size_t why_size)
{
  maker_t maker = {fn, arg, why, why_size};
  char path[PATH_ROOM], theirs[PATH_ROOM];
  weft_key_pair_t own = {{0}, {0}};
  if (!ctl_keyring_name_valid (name) || strcmp (name, role_dir[0]) == 0 || strcmp (name, role_dir[1]) == 0) {
    snprintf (why, why_size, "bad name '%.60s': letters, digits, '.', '_' and '-', at most %d", name,
              WEFT_KEY_NAME_MAX - 1);
    return WEFT_E_USAGE;
  }
  int rc = check_length (&maker, dir);
  path_of (path, dir, "controller", SUFFIX);
  if (rc == 0)
    rc = weft_keys_read (path, 0, &own, why, why_size);
  path_of (theirs, dir, name, "");
  if (rc == 0)
    rc = make_dir (&maker, theirs);
  if (rc == 0)
    rc = make_public (&maker, theirs, "controller", "public key of the controller", &own);
  return rc == 0 ? make_peer (&maker, dir, theirs, name) : rc;
}
