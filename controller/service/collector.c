/* SPDX-License-Identifier: Apache-2.0 */
#include "collector.h"

#include <curl/curl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../common/clocks.h"
#include "../../common/limits.h"
#include "../../common/status.h"
#include "../view/otlp.h"
#include "gzip.h"

#define TRACES_PATH     "/v1/traces"
#define FIELDS_VARIABLE "OTEL_EXPORTER_OTLP_HEADERS"
#define PACK_VARIABLE   "OTEL_EXPORTER_OTLP_COMPRESSION"

struct ctl_collector_t {
  CURL *curl;
  struct curl_slist *fields;
  ctl_gzip_t *gzip;          /* NULL: nothing is packed */
  char *url;                 /* as it is shown */
  _Atomic uint64_t until_ns; /* 0: no hurry */
  void (*watch) (void *arg); /* NULL: nobody */
  void *watch_arg;
  unsigned char answer[WEFT_COLLECTOR_ANSWER_MAX];
  size_t answer_size;
  char error[CURL_ERROR_SIZE];
};

/* What is beyond is not looked at, and no reason to fail. */
static size_t take_answer (char *data, size_t one, size_t count, void *self_v)
{
  ctl_collector_t *self = self_v;
  size_t size = one * count, room = sizeof self->answer - self->answer_size;
  memcpy (self->answer + self->answer_size, data, size < room ? size : room);
  self->answer_size += size < room ? size : room;
  return size;
}

static int look_at_clock (void *self_v, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
  const ctl_collector_t *self = self_v;
  if (self->watch)
    self->watch (self->watch_arg);
  uint64_t until_ns = atomic_load (&self->until_ns);
  return until_ns && weft_mono_ns () >= until_ns;
}

/* The URL in two forms: to use, and to show. WEFT_E_USAGE, with why. */
static int read_url (ctl_collector_t *self, const char *text, char *why, size_t why_size)
{
  char *scheme = NULL, *host = NULL, *path = NULL, *whole = NULL;
  CURLU *url = curl_url ();
  CURLUcode code = url ? curl_url_set (url, CURLUPART_URL, text, 0) : CURLUE_OUT_OF_MEMORY;
  int rc = code == CURLUE_OUT_OF_MEMORY ? WEFT_E_NOMEM : 0;
  if (code == CURLUE_OK) {
    curl_url_get (url, CURLUPART_SCHEME, &scheme, 0);
    curl_url_get (url, CURLUPART_HOST, &host, 0);
    curl_url_get (url, CURLUPART_PATH, &path, 0);
  }
  if (rc == 0 &&
      (!scheme || !host || !*host || (strcmp (scheme, "http") != 0 && strcmp (scheme, "https") != 0))) {
    snprintf (why, why_size, "it must read like http://127.0.0.1:4318 or https://host/v1/traces");
    rc = WEFT_E_USAGE;
  }
  if (rc == 0 && (!path || strcmp (path, "/") == 0))
    curl_url_set (url, CURLUPART_PATH, TRACES_PATH, 0);
  if (rc == 0 && (curl_url_get (url, CURLUPART_URL, &whole, 0) != CURLUE_OK ||
                  curl_easy_setopt (self->curl, CURLOPT_URL, whole) != CURLE_OK))
    rc = WEFT_E_NOMEM;
  curl_free (whole);
  whole = NULL;
  if (rc == 0) {
    curl_url_set (url, CURLUPART_USER, NULL, 0);
    curl_url_set (url, CURLUPART_PASSWORD, NULL, 0);
    curl_url_get (url, CURLUPART_URL, &whole, 0);
    self->url = whole ? strdup (whole) : NULL;
    rc = self->url ? 0 : WEFT_E_NOMEM;
  }
  curl_free (whole);
  curl_free (scheme);
  curl_free (host);
  curl_free (path);
  curl_url_cleanup (url);
  return rc;
}

static int add_field (ctl_collector_t *self, const char *text)
{
  struct curl_slist *longer = curl_slist_append (self->fields, text);
  self->fields = longer ? longer : self->fields;
  return longer ? 0 : WEFT_E_NOMEM;
}

/* "key=value,…", values percent-encoded, as OpenTelemetry has it. Not on the command line, where
 * everybody reads what is secret. */
static int add_given_fields (ctl_collector_t *self, char *why, size_t why_size)
{
  const char *given = getenv (FIELDS_VARIABLE);
  char *copy = strdup (given ? given : ""), *rest = copy;
  int rc = copy ? 0 : WEFT_E_NOMEM;
  for (char *pair; rc == 0 && (pair = strsep (&rest, ","));) {
    char *value = strchr (pair, '='), *decoded = NULL, field[WEFT_COLLECTOR_FIELD_MAX];
    pair += strspn (pair, " ");
    if (!*pair)
      continue;
    if (value)
      *value++ = 0;
    decoded = value ? curl_easy_unescape (self->curl, value, 0, NULL) : NULL;
    if (!decoded || strpbrk (decoded, "\r\n") || strpbrk (pair, ": \r\n") ||
        (size_t) snprintf (field, sizeof field, "%s: %s", pair, decoded) >= sizeof field) {
      snprintf (why, why_size, FIELDS_VARIABLE " must read like api-key=secret,other=value");
      rc = WEFT_E_USAGE;
    } else
      rc = add_field (self, field);
    curl_free (decoded);
  }
  free (copy);
  return rc;
}

/* Off unless asked for, as OpenTelemetry has it: to pack a span takes as much CPU as to read and encode it
 * (2.6 us, for a fifth of the bytes), and most collectors are next door. */
static int set_packing (ctl_collector_t *self, char *why, size_t why_size)
{
  const char *given = getenv (PACK_VARIABLE);
  if (!given || !*given || strcmp (given, "none") == 0)
    return 0;
  if (strcmp (given, "gzip") != 0) {
    snprintf (why, why_size, PACK_VARIABLE " is '%.20s': gzip or none is meant", given);
    return WEFT_E_USAGE;
  }
  self->gzip = ctl_gzip_new ();
  return self->gzip ? add_field (self, "Content-Encoding: gzip") : WEFT_E_NOMEM;
}

static int set_up (ctl_collector_t *self, char *why, size_t why_size)
{
  int rc = add_field (self, "Content-Type: application/x-protobuf");
  if (rc == 0)
    rc = add_field (self, "Expect:");
  if (rc == 0)
    rc = set_packing (self, why, why_size);
  if (rc == 0)
    rc = add_given_fields (self, why, why_size);
  if (rc < 0)
    return rc;
  CURL *curl = self->curl;
  CURLcode code = CURLE_OK;
#define SET(option, value) code = code ? code : curl_easy_setopt (curl, option, value)
  SET (CURLOPT_HTTPHEADER, self->fields);
  SET (CURLOPT_USERAGENT, "weft/" WEFT_VERSION);
  SET (CURLOPT_NOSIGNAL, 1L);
  SET (CURLOPT_PROTOCOLS_STR, "http,https");
  SET (CURLOPT_CONNECTTIMEOUT_MS, (long) WEFT_COLLECTOR_CONNECT_MS);
  SET (CURLOPT_TIMEOUT_MS, (long) WEFT_COLLECTOR_MS);
  SET (CURLOPT_ERRORBUFFER, self->error);
  SET (CURLOPT_WRITEFUNCTION, take_answer);
  SET (CURLOPT_WRITEDATA, (void *) self);
  SET (CURLOPT_NOPROGRESS, 0L);
  SET (CURLOPT_XFERINFOFUNCTION, look_at_clock);
  SET (CURLOPT_XFERINFODATA, (void *) self);
#undef SET
  return code == CURLE_OK ? 0 : WEFT_E_NOMEM;
}

int ctl_collector_new (const char *url, ctl_collector_t **ret_self, char *why, size_t why_size)
{
  ctl_collector_t *self = calloc (1, sizeof *self);
  if (self && curl_global_init (CURL_GLOBAL_DEFAULT) != CURLE_OK) {
    free (self);
    self = NULL;
  }
  if (!self)
    return WEFT_E_NOMEM;
  self->curl = curl_easy_init ();
  int rc = self->curl ? set_up (self, why, why_size) : WEFT_E_NOMEM;
  if (rc == 0)
    rc = read_url (self, url, why, why_size);
  if (rc)
    ctl_collector_destroy (&self);
  else
    *ret_self = self;
  return rc;
}

void ctl_collector_destroy (ctl_collector_t **self_p)
{
  ctl_collector_t *self = *self_p;
  if (!self)
    return;
  curl_easy_cleanup (self->curl);
  curl_slist_free_all (self->fields);
  ctl_gzip_destroy (&self->gzip);
  curl_global_cleanup ();
  free (self->url);
  free (self);
  *self_p = NULL;
}

const char *ctl_collector_url (const ctl_collector_t *self)
{
  return self->url;
}

void ctl_collector_watch (ctl_collector_t *self, void (*fn) (void *arg), void *arg)
{
  self->watch = fn;
  self->watch_arg = arg;
}

void ctl_collector_hurry (ctl_collector_t *self, uint64_t until_ns)
{
  atomic_store (&self->until_ns, until_ns);
}

/* The OTLP specification's list; everything else would come back the same. */
static int is_for_now (long status)
{
  return status == 429 || status == 502 || status == 503 || status == 504;
}

static int read_answer (ctl_collector_t *self, ctl_collector_answer_t *answer)
{
  long status = 0;
  curl_off_t after_s = 0;
  curl_easy_getinfo (self->curl, CURLINFO_RESPONSE_CODE, &status);
  answer->status = status;
  if (status >= 200 && status < 300) {
    /* Some answer with an empty body, or with JSON: they took it. */
    if (ctl_otlp_read_answer (self->answer, self->answer_size, &answer->rejected, answer->why,
                              sizeof answer->why) < 0)
      answer->rejected = 0;
    return 0;
  }
  snprintf (answer->why, sizeof answer->why, "it answers with status %ld", status);
  if (!is_for_now (status))
    return WEFT_E_DENIED;
  curl_easy_getinfo (self->curl, CURLINFO_RETRY_AFTER, &after_s);
  answer->retry_after_ms = after_s > 0 ? (uint64_t) after_s * 1000 : 0;
  return WEFT_E_BUSY;
}

int ctl_collector_post (ctl_collector_t *self, const void *data, size_t size,
                        ctl_collector_answer_t *ret_answer)
{
  ctl_collector_answer_t answer = {0};
  int rc = self->gzip ? ctl_gzip_pack (self->gzip, data, size, &data, &size) : 0;
  if (rc < 0)
    return rc;
  self->answer_size = 0;
  *self->error = 0;
  curl_easy_setopt (self->curl, CURLOPT_POSTFIELDS, data);
  curl_easy_setopt (self->curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t) size);
  CURLcode code = curl_easy_perform (self->curl);
  rc = code == CURLE_OK ? read_answer (self, &answer) : WEFT_E_BUSY;
  if (code != CURLE_OK)
    snprintf (answer.why, sizeof answer.why, "%.200s",
              *self->error ? self->error : curl_easy_strerror (code));
  *ret_answer = answer;
  return rc;
}
