/* SPDX-License-Identifier: Apache-2.0 */
/* verbs: the one table of the command line. Parser, `--help`, completion and
 * man page are made from it, so none of them can say what another does not. */
#ifndef CTL_VERBS_H
#define CTL_VERBS_H

#include <stddef.h>
#include <stdint.h>

#include "../../common/keys.h"
#include "../../common/limits.h"

/* What main returns, and with it what every verb does. */
#define CTL_EXIT_OK     0
#define CTL_EXIT_FAILED 1
#define CTL_EXIT_USAGE  2

typedef struct {
  const char *name;     /* without its dashes: one of one letter has one, others two */
  const char *argument; /* NULL: takes none */
  const char *help;     /* one line */
  int repeats;          /* may be given several times */
} ctl_option_t;

typedef struct ctl_call_t ctl_call_t;

typedef struct {
  const char *name;
  const char *arguments; /* "PID…", for people */
  const char *summary;   /* one line */
  const char *detail;    /* a paragraph, or NULL */
  const ctl_option_t *options;
  uint32_t option_count;
  int operands_min, operands_max; /* max -1: any number */
  int command;                    /* options end at the first operand: what follows is a command */
  int (*run) (ctl_call_t *call);
} ctl_verb_t;

/* The table, in the order of `weft --help`. */
extern const ctl_verb_t ctl_verbs[];
extern const uint32_t ctl_verb_count;
/* Options that every verb takes. */
extern const ctl_option_t ctl_common_options[];
extern const uint32_t ctl_common_option_count;
/* NULL: none of that name. */
const ctl_verb_t *ctl_verb_find (const char *name);

/* ---- one call ----------------------------------------------------------- */

struct ctl_call_t {
  const ctl_verb_t *verb;
  struct {
    const ctl_option_t *option;
    const char *value; /* NULL: the option takes none */
  } given[WEFT_OPTIONS_MAX];
  uint32_t given_count;
  char **operands; /* borrowed from argv */
  int operand_count;
  char address[256];            /* of the controller */
  char keys[WEFT_KEYS_DIR_MAX]; /* directory of keys, absolute; "": none */
};

/* Parses argv[1…] of `weft VERB …` (argv[0] is the verb). 0; WEFT_E_USAGE: said so on stderr;
 * 1: `--help` was asked for. */
int ctl_call_parse (ctl_call_t *self, const ctl_verb_t *verb, int argc, char **argv);
/* 1 if the option was given. */
int ctl_call_has (const ctl_call_t *self, const char *name);
/* The last value given, or `absent`. */
const char *ctl_call_value (const ctl_call_t *self, const char *name, const char *absent);
/* Every value of a repeated option: *at begins at 0. NULL: no more. */
const char *ctl_call_next (const ctl_call_t *self, const char *name, uint32_t *at);
/* A duration or `absent_ms`. WEFT_E_USAGE: said so. */
int ctl_call_duration (const ctl_call_t *self, const char *name, uint64_t max_ms, uint64_t absent_ms,
                       uint64_t *ret_ms);
/* Bytes, "256M", at least min, or `absent`. WEFT_E_USAGE: said so. */
int ctl_call_size (const ctl_call_t *self, const char *name, uint64_t min, uint64_t absent,
                   uint64_t *ret_bytes);
/* A whole number within min..max, or `absent`. WEFT_E_USAGE: said so. */
int ctl_call_number (const ctl_call_t *self, const char *name, uint64_t min, uint64_t max, uint64_t absent,
                     uint64_t *ret_number);
/* An operand as a pid. WEFT_E_USAGE: said so. */
int ctl_call_pid (const char *text, int64_t *ret_pid);

/* ---- the verbs, one file each ------------------------------------------- */
int ctl_verb_profile (ctl_call_t *call);
int ctl_verb_controller (ctl_call_t *call);
int ctl_verb_run (ctl_call_t *call);
int ctl_verb_attach (ctl_call_t *call);
int ctl_verb_detach (ctl_call_t *call);
int ctl_verb_doctor (ctl_call_t *call);
int ctl_verb_ls (ctl_call_t *call);
int ctl_verb_instruct (ctl_call_t *call);
int ctl_verb_stop (ctl_call_t *call);
int ctl_verb_tasks (ctl_call_t *call);
int ctl_verb_show (ctl_call_t *call);
int ctl_verb_top (ctl_call_t *call);
int ctl_verb_report (ctl_call_t *call);
int ctl_verb_export (ctl_call_t *call);
int ctl_verb_record (ctl_call_t *call);
int ctl_verb_replay (ctl_call_t *call);
int ctl_verb_keys (ctl_call_t *call);

#endif
