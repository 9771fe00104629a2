/* SPDX-License-Identifier: Apache-2.0 */
/* service: the controller as a process: its places, its sockets, its loop.
 *
 *   start   claim the address ─ claim the journal ─ store ─ recovery ─ sockets
 *   loop    intake, control, subscriptions; heartbeat each second; what is settled
 *           goes to the store; instructions that had their time end
 *   end     (SIGTERM, SIGINT, quit, nobody there for idle_exit_ms)
 *           all to the store ─ checkpoint ─ sockets removed
 *
 *  V1  it listens only after everything that may refuse has agreed
 *  V2  an execution leaves memory only once the store has committed it */
#ifndef CTL_SERVICE_H
#define CTL_SERVICE_H

#include <stdint.h>

typedef struct {
  const char *listen;      /* NULL: the default address */
  const char *journal;     /* directory; NULL: beside the store */
  const char *store;       /* file; NULL: in the state directory */
  const char *keys;        /* directory of keys; NULL or "": none, tcp is plain */
  int plain_tcp;           /* plain tcp beyond loopback is wanted */
  int background;          /* return when it listens; it lives on in its own session */
  uint64_t idle_exit_ms;   /* 0: never */
  const char *otlp;        /* URL of a collector; NULL: nothing goes out */
  uint64_t journal_max;    /* bytes */
  uint64_t journal_age_ms; /* 0 is an age, too */
  uint64_t store_max;      /* bytes; the oldest tasks go beyond */
  uint64_t store_age_ms;   /* 0: any age */
  uint64_t tasks_max;      /* in memory; overload.h says what happens near it */
  uint64_t memory_max;     /* bytes of them and their reports */
} ctl_service_options_t;

/* Runs until told to end (background: until it listens). 0 or a status; everything there
 * is to say about a failure has been said in one line on stderr. */
int ctl_service_run (const ctl_service_options_t *options);

#endif
