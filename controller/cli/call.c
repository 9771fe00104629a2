/* SPDX-License-Identifier: Apache-2.0 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../common/clocks.h"
#include "../../common/log.h"
#include "../../common/status.h"
#include "../../common/wire.h"
#include "verbs.h"

/* getopt returns the option's index beyond every character. */
#define FIRST 256

static const ctl_option_t *option_at (const ctl_verb_t *verb, uint32_t n)
{
  return n < verb->option_count ? &verb->options[n] : &ctl_common_options[n - verb->option_count];
}

static int usage_error (const ctl_call_t *self, const char *what, const char *which)
{
  weft_log_error ("%s: %s%s; see `weft %s --help`", self->verb->name, what, which, self->verb->name);
  return WEFT_E_USAGE;
}

static int take (ctl_call_t *self, const ctl_option_t *option, const char *value)
{
  if (!option->repeats && ctl_call_has (self, option->name))
    return usage_error (self, "given twice: --", option->name);
  if (self->given_count == WEFT_OPTIONS_MAX)
    return usage_error (self, "too many options", "");
  self->given[self->given_count].option = option;
  self->given[self->given_count++].value = value;
  return 0;
}

/* What getopt is told of the options: `shorts` are those of one letter. */
static void describe (const ctl_verb_t *verb, struct option longs[WEFT_OPTIONS_MAX + 1],
                      char shorts[4 + 2 * WEFT_OPTIONS_MAX])
{
  uint32_t count = verb->option_count + ctl_common_option_count;
  struct option *at = longs;
  size_t size = (size_t) snprintf (shorts, 4, "%s", verb->command ? "+:h" : ":h");
  memset (longs, 0, (WEFT_OPTIONS_MAX + 1) * sizeof *longs);
  for (uint32_t n = 0; n < count; n++) {
    const ctl_option_t *option = option_at (verb, n);
    if (option->name[1] == 0)
      size += (size_t) snprintf (shorts + size, 3, "%s%s", option->name, option->argument ? ":" : "");
    else
      *at++ = (struct option){.name = option->name,
                              .has_arg = option->argument ? required_argument : no_argument,
                              .val = FIRST + (int) n};
  }
}

static const ctl_option_t *option_of (const ctl_verb_t *verb, int c)
{
  uint32_t n = 0;
  if (c >= FIRST)
    return option_at (verb, (uint32_t) (c - FIRST));
  while (option_at (verb, n)->name[0] != c || option_at (verb, n)->name[1])
    n++;
  return option_at (verb, n);
}

static int parse_options (ctl_call_t *self, int argc, char **argv)
{
  struct option longs[WEFT_OPTIONS_MAX + 1];
  char shorts[4 + 2 * WEFT_OPTIONS_MAX];
  describe (self->verb, longs, shorts);
  optind = 0; /* glibc: begin anew, also with other arguments than last time */
  for (int c; (c = getopt_long (argc, argv, shorts, longs, NULL)) != -1;) {
    if (c == '?')
      return usage_error (self, "unknown option ", argv[optind - 1]);
    if (c == ':')
      return usage_error (self, "no argument given with ", argv[optind - 1]);
    if (c == 'h')
      return 1;
    int rc = take (self, option_of (self->verb, c), optarg);
    if (rc < 0)
      return rc;
  }
  self->operands = argv + optind;
  self->operand_count = argc - optind;
  return 0;
}

static int find_address (ctl_call_t *self)
{
  const char *given = ctl_call_value (self, "controller", NULL);
  char endpoint[WEFT_ENDPOINT_MAX], why[200] = "";
  int rc = 0;
  if (given)
    rc = (size_t) snprintf (self->address, sizeof self->address, "%s", given) < sizeof self->address
             ? 0
             : WEFT_E_RANGE;
  else
    rc = weft_endpoint_default (self->address);
  if (rc == 0)
    rc = weft_endpoint (self->address, WEFT_ENDPOINT_REPORTS, endpoint, why, sizeof why);
  if (rc < 0) {
    weft_log_error ("bad controller address '%s': %s", self->address, *why ? why : weft_status_text (rc));
    return WEFT_E_USAGE;
  }
  return 0;
}

static int find_keys (ctl_call_t *self)
{
  int rc = weft_keys_directory (ctl_call_value (self, "keys", NULL), self->keys);
  if (rc < 0)
    weft_log_error ("bad directory of keys: %s; give --keys an absolute path of less than %d bytes",
                    weft_status_text (rc), WEFT_KEYS_DIR_MAX - WEFT_KEY_NAME_MAX - 32);
  return rc;
}

int ctl_call_parse (ctl_call_t *self, const ctl_verb_t *verb, int argc, char **argv)
{
  *self = (ctl_call_t){.verb = verb};
  int rc = parse_options (self, argc, argv);
  if (rc)
    return rc;
  if (ctl_call_has (self, "help"))
    return 1;
  if (ctl_call_has (self, "verbose"))
    weft_log_verbose (1);
  if (self->operand_count < verb->operands_min)
    return usage_error (self, "what is missing: ", verb->arguments);
  if (verb->operands_max >= 0 && self->operand_count > verb->operands_max)
    return usage_error (self, "not expected: ", self->operands[verb->operands_max]);
  if (ctl_call_has (self, "json") && ctl_call_has (self, "csv"))
    return usage_error (self, "--json and --csv exclude each other", "");
  return find_keys (self) < 0 ? WEFT_E_USAGE : find_address (self);
}

int ctl_call_has (const ctl_call_t *self, const char *name)
{
  for (uint32_t n = 0; n < self->given_count; n++)
    if (strcmp (self->given[n].option->name, name) == 0)
      return 1;
  return 0;
}

const char *ctl_call_value (const ctl_call_t *self, const char *name, const char *absent)
{
  for (uint32_t n = self->given_count; n > 0; n--)
    if (strcmp (self->given[n - 1].option->name, name) == 0)
      return self->given[n - 1].value;
  return absent;
}

const char *ctl_call_next (const ctl_call_t *self, const char *name, uint32_t *at)
{
  for (; *at < self->given_count; ++*at)
    if (strcmp (self->given[*at].option->name, name) == 0)
      return self->given[(*at)++].value;
  return NULL;
}

int ctl_call_duration (const ctl_call_t *self, const char *name, uint64_t max_ms, uint64_t absent_ms,
                       uint64_t *ret_ms)
{
  const char *text = ctl_call_value (self, name, NULL);
  if (!text) {
    *ret_ms = absent_ms;
    return 0;
  }
  int rc = weft_duration_ms (text, max_ms, ret_ms);
  if (rc == WEFT_E_RANGE)
    weft_log_error ("bad duration '%s' for --%s: at most %llus; give less", text, name,
                    (unsigned long long) (max_ms / 1000));
  else if (rc < 0)
    weft_log_error ("bad duration '%s' for --%s: a number with a unit is meant, such as 10s, 250ms or 5m",
                    text, name);
  return rc < 0 ? WEFT_E_USAGE : 0;
}

int ctl_call_number (const ctl_call_t *self, const char *name, uint64_t min, uint64_t max, uint64_t absent,
                     uint64_t *ret_number)
{
  const char *text = ctl_call_value (self, name, NULL);
  if (!text) {
    *ret_number = absent;
    return 0;
  }
  char *end;
  uint64_t number = strtoull (text, &end, 10);
  if (*text < '0' || *text > '9' || *end || strlen (text) > 18 || number < min || number > max) {
    weft_log_error ("bad number '%s' for --%s: a whole number from %llu to %llu is meant", text, name,
                    (unsigned long long) min, (unsigned long long) max);
    return WEFT_E_USAGE;
  }
  *ret_number = number;
  return 0;
}

int ctl_call_size (const ctl_call_t *self, const char *name, uint64_t min, uint64_t absent,
                   uint64_t *ret_bytes)
{
  static const char units[] = "KMGT";
  const char *text = ctl_call_value (self, name, NULL);
  if (!text) {
    *ret_bytes = absent;
    return 0;
  }
  char *end;
  uint64_t number = strtoull (text, &end, 10);
  const char *unit = *end && !end[1] ? strchr (units, *end) : NULL;
  if (*text < '0' || *text > '9' || !unit || end - text > 6 || number << (10 * (unit - units + 1)) < min) {
    weft_log_error ("bad size '%s' for --%s: at least %lluM is meant, with a unit: K, M, G or T", text, name,
                    (unsigned long long) (min >> 20));
    return WEFT_E_USAGE;
  }
  *ret_bytes = number << (10 * (unit - units + 1));
  return 0;
}

int ctl_call_pid (const char *text, int64_t *ret_pid)
{
  char *end;
  long pid = strtol (text, &end, 10);
  if (*text < '0' || *text > '9' || *end || pid <= 0 || pid > 4194304) { /* the kernel's own limit */
    weft_log_error ("bad pid '%s': the number of a running process is meant; `weft profile` lists them",
                    text);
    return WEFT_E_USAGE;
  }
  *ret_pid = pid;
  return 0;
}
