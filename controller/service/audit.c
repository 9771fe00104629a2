/* SPDX-License-Identifier: Apache-2.0 */
#include "audit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "../../common/ids.h"
#include "../../common/limits.h"
#include "../../common/status.h"
#include "../view/json.h"

#define NAME      "audit.log"
#define PATH_ROOM 600

struct ctl_audit_t {
  char path[PATH_ROOM];
  int fd; /* -1: not open, tried again with the next line */
  uint64_t lost;
};

/* ---- the file ----------------------------------------------------------- */

/* A1 */
static int open_file (ctl_audit_t *self)
{
  self->fd = open (self->path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY, 0600);
  return self->fd < 0 ? WEFT_E_IO : 0;
}

int ctl_audit_open (const char *store_path, ctl_audit_t **ret_self, char *why, size_t why_size)
{
  const char *slash = strrchr (store_path, '/');
  int dir = slash ? (int) (slash - store_path) + 1 : 0;
  ctl_audit_t *self = calloc (1, sizeof *self);
  if (!self)
    return WEFT_E_NOMEM;
  self->fd = -1;
  int rc = (size_t) snprintf (self->path, sizeof self->path, "%.*s" NAME, dir, store_path) < sizeof self->path
               ? open_file (self)
               : WEFT_E_RANGE;
  if (rc < 0) {
    snprintf (why, why_size,
              "%s: %s; who did what must be written down, make it possible or choose another --store",
              self->path, rc == WEFT_E_RANGE ? "too long" : strerror (errno));
    ctl_audit_close (&self);
    return rc;
  }
  *ret_self = self;
  return 0;
}

void ctl_audit_close (ctl_audit_t **self_p)
{
  ctl_audit_t *self = *self_p;
  if (!self)
    return;
  if (self->fd >= 0)
    close (self->fd);
  free (self);
  *self_p = NULL;
}

uint64_t ctl_audit_lost (const ctl_audit_t *self)
{
  return self->lost;
}

/* A3 */
static void rotate (ctl_audit_t *self)
{
  char from[PATH_ROOM + 16], to[PATH_ROOM + 16];
  close (self->fd);
  for (int n = WEFT_AUDIT_FILES_MAX - 1; n >= 0; n--) {
    snprintf (to, sizeof to, "%s.%d", self->path, n + 1);
    if (n > 0)
      snprintf (from, sizeof from, "%s.%d", self->path, n);
    else
      snprintf (from, sizeof from, "%s", self->path);
    rename (from, to); /* one that is not there yet is none to keep */
  }
  open_file (self);
}

static int append (ctl_audit_t *self, const char *line, size_t size)
{
  struct stat st;
  if (self->fd < 0 && open_file (self) < 0)
    return WEFT_E_IO;
  if (fstat (self->fd, &st) == 0 && st.st_size > 0 && (uint64_t) st.st_size + size > WEFT_AUDIT_FILE_MAX)
    rotate (self);
  return self->fd >= 0 && write (self->fd, line, size) == (ssize_t) size ? 0 : WEFT_E_IO;
}

/* ---- a line ------------------------------------------------------------- */

static json_t *begin (const char *event, const char *who)
{
  char text[40];
  struct timespec now;
  struct tm utc;
  clock_gettime (CLOCK_REALTIME, &now);
  gmtime_r (&now.tv_sec, &utc);
  size_t size = strftime (text, sizeof text, "%Y-%m-%dT%H:%M:%S", &utc);
  snprintf (text + size, sizeof text - size, ".%03ldZ", now.tv_nsec / 1000000);
  return json_pack ("{s:s, s:s, s:o}", "time", text, "event", event, "who",
                    ctl_json_text (who && *who ? who : "unknown"));
}

/* What a client asked for may be as long as a frame; who, when and the result are always said. */
static char *shorten (json_t *json, char *text)
{
  static const char *const kept[] = {"time", "event", "who", "instruction"};
  json_t *brief = json_object ();
  free (text);
  for (size_t n = 0; n < sizeof kept / sizeof *kept; n++)
    if (json_object_get (json, kept[n]))
      json_object_set (brief, kept[n], json_object_get (json, kept[n]));
  json_object_set_new (brief, "result", json_string ("too long to be written whole"));
  text = json_dumps (brief, JSON_COMPACT | JSON_ENSURE_ASCII);
  json_decref (brief);
  return text;
}

/* Takes the reference. A2, A4 */
static void write_line (ctl_audit_t *self, json_t *json)
{
  char *text = json ? json_dumps (json, JSON_COMPACT | JSON_ENSURE_ASCII) : NULL;
  if (text && strlen (text) >= WEFT_AUDIT_LINE_MAX)
    text = shorten (json, text);
  json_decref (json);
  size_t size = text ? strlen (text) : 0;
  for (char *rubout = text;
       rubout && (rubout = strchr (rubout, 0x7f));) /* the one that JSON leaves as it is */
    *rubout = '?';
  if (text)
    text[size] = '\n'; /* one write, terminator and all: it is not needed any more */
  if (!text || append (self, text, size + 1) < 0)
    self->lost++;
  free (text);
}

static void set_text (json_t *json, const char *key, const char *text)
{
  json_object_set_new (json, key, ctl_json_text (text));
}

static void set_uuid (json_t *json, const uint8_t uuid[WEFT_UUID_SIZE])
{
  char text[37];
  weft_uuid_put (text, uuid);
  json_object_set_new (json, "instance", json_string (text));
}

void ctl_audit_attach (ctl_audit_t *self, const char *who, const weft_up_message_t *hello)
{
  json_t *json = self ? begin ("attach", who) : NULL;
  if (!json)
    return;
  json_object_set_new (json, "pid", json_integer ((json_int_t) hello->pid));
  set_uuid (json, hello->instance);
  set_text (json, "service", hello->service);
  set_text (json, "vm", hello->vm);
  set_text (json, "host", hello->host);
  set_text (json, "result", "ok");
  write_line (self, json);
}

void ctl_audit_left (ctl_audit_t *self, const char *who, const weft_up_message_t *bye,
                     const ctl_instance_t *instance)
{
  json_t *json = self ? begin ("left", who) : NULL;
  if (!json)
    return;
  char result[100];
  snprintf (result, sizeof result, "%u of %u slots as before, %u foreign, %u threads left",
            bye->slots_restored, bye->slots_written, bye->slots_foreign, bye->threads_left);
  json_object_set_new (json, "pid", json_integer ((json_int_t) instance->pid));
  set_uuid (json, bye->instance);
  set_text (json, "service", instance->service);
  set_text (json, "reason", bye->reason);
  set_text (json, "result", result);
  write_line (self, json);
}

void ctl_audit_release (ctl_audit_t *self, const char *who, const ctl_instance_t *instance,
                        const char *reason)
{
  json_t *json = self ? begin ("release", who) : NULL;
  if (!json)
    return;
  json_object_set_new (json, "pid", json_integer ((json_int_t) instance->pid));
  set_uuid (json, instance->uuid);
  set_text (json, "service", instance->service);
  set_text (json, "reason", reason);
  set_text (json, "result", "ok");
  write_line (self, json);
}

/* ---- requests ----------------------------------------------------------- */

static void copy (json_t *to, const json_t *from, const char *key, const char *as)
{
  json_t *value = json_object_get (from, key);
  if (value)
    json_object_set (to, as, value);
}

void ctl_audit_request (ctl_audit_t *self, const char *who, const json_t *request, const json_t *answer)
{
  /* Which arguments say what was asked for; `number` of the answer is that of a new instruction. */
  static const struct {
    const char *op, *number_from, *keys[16];
  } audited[] = {
      {"instruct",
       "answer",
       {"actions", "selectors", "match", "sample", "max", "carrier", "embed_to", "networks", "header",
        "excludes", "lease_ms", "for_ms"}},
      {"stop", "request", {NULL}},
      {"detach", NULL, {"all"}},
      {"quit", NULL, {NULL}},
  };
  const char *op = json_string_value (json_object_get (request, "op"));
  for (size_t n = 0; self && op && n < sizeof audited / sizeof *audited; n++) {
    if (strcmp (op, audited[n].op) != 0)
      continue;
    json_t *json = begin (op, who);
    if (!json)
      return;
    if (audited[n].number_from)
      copy (json, *audited[n].number_from == 'a' ? answer : request, "number", "instruction");
    for (const char *const *key = audited[n].keys; *key; key++)
      copy (json, request, *key, *key);
    copy (json, answer, "pids", "pids"); /* whom it reached */
    copy (json, answer, "uuids", "instances");
    const char *why = json_string_value (json_object_get (answer, "why"));
    set_text (json, "result", json_is_true (json_object_get (answer, "ok")) ? "ok" : why ? why : "failed");
    write_line (self, json);
  }
}
