/* SPDX-License-Identifier: Apache-2.0 */
#include "drain.h"

#include <stdlib.h>
#include <string.h>

#include "../../common/clocks.h"
#include "../../common/fault.h"
#include "../../common/status.h"
#include "../../common/wire.h"

#define BATCH_NUMBER_MAX (1ull << 48) /* a page that says more was scribbled over */

struct car_drain_t {
  shm_reader_t *reader;
  car_desk_t *desk, *own_desk; /* own_desk: to be destroyed, or NULL */
  weft_batch_head_t head;
  uint8_t start[WEFT_UUID_SIZE];
  int open; /* within a call: a batch is being written into `slot` */
  unsigned slot;
  uint64_t number;                      /* last sealed */
  uint64_t pushed;                      /* number of the last batch that is out */
  uint64_t covered_ns;                  /* end of the last batch's interval */
  uint64_t told[WEFT_LOSS_WIRE_COUNT];  /* of status.lost */
  uint64_t corrupt_told, broken_told;   /* of the reader's own counts */
  uint64_t own[WEFT_LOSS_WIRE_COUNT];   /* lost here, not told yet */
  int spool_full;                       /* since the last batch */
  uint64_t waiting_since_ns, repush_ms; /* no acknowledgement since; patience */
};

/* D1: the later of what the page and the spool say. Torn slots are freed on the way. */
static uint64_t last_number (shm_reader_t *reader, uint64_t page)
{
  uint64_t last = page < BATCH_NUMBER_MAX ? page : 0, number = 0;
  size_t size;
  while (shm_spool_next (reader, number, &number, &size) && number < BATCH_NUMBER_MAX)
    last = number > last ? number : last;
  return last;
}

int car_drain_new (shm_reader_t *reader, const uint8_t instance[WEFT_UUID_SIZE],
                   const uint8_t boot[WEFT_UUID_SIZE], car_desk_t *desk, car_drain_t **ret_self)
{
  car_drain_t *self = calloc (1, sizeof *self);
  if (!self)
    return WEFT_E_NOMEM;
  self->reader = reader;
  self->own_desk = desk ? NULL : car_desk_new ();
  self->desk = desk ? desk : self->own_desk;
  if (!self->desk) {
    car_drain_destroy (&self);
    return WEFT_E_NOMEM;
  }
  const void *base = shm_reader_base (reader);
  memcpy (self->start, ((const shm_head_t *) base)->start, WEFT_UUID_SIZE);
  self->head.major = WEFT_WIRE_MAJOR;
  self->head.minor = WEFT_WIRE_MINOR;
  memcpy (self->head.instance, instance, WEFT_UUID_SIZE);
  memcpy (self->head.start, self->start, WEFT_UUID_SIZE);
  memcpy (self->head.boot, boot, WEFT_UUID_SIZE);
  self->covered_ns = weft_boot_ns ();
  self->repush_ms = CAR_DRAIN_REPUSH_MS;
  shm_control_t *control = shm_control (shm_reader_base (reader));
  memcpy (self->told, control->lost_reported, sizeof self->told);
  self->number = last_number (reader, control->batch_last);
  *ret_self = self;
  return 0;
}

void car_drain_destroy (car_drain_t **self_p)
{
  if (!self_p || !*self_p)
    return;
  car_drain_t *self = *self_p;
  car_desk_destroy (&self->own_desk);
  free (self);
  *self_p = NULL;
}

static uint64_t rise (uint64_t now, uint64_t before)
{
  return now > before ? now - before : 0;
}

/* Losses that no batch has told yet. Returns whether there are any. */
static int gather_losses (car_drain_t *self, uint64_t losses[WEFT_LOSS_WIRE_COUNT], shm_status_t *status)
{
  shm_reader_status (self->reader, status);
  int any = 0;
  for (unsigned i = 0; i < WEFT_LOSS_WIRE_COUNT; i++)
    losses[i] = rise (status->lost[i], self->told[i]) + self->own[i];
  losses[WEFT_LOSS_UNDECODABLE] += rise (shm_reader_corrupt (self->reader), self->corrupt_told);
  losses[WEFT_LOSS_OWNER_DIED] += rise (shm_reader_broken (self->reader), self->broken_told);
  if (self->spool_full) { /* D3 */
    losses[WEFT_LOSS_SPOOL_FULL] += losses[WEFT_LOSS_RING_FULL];
    losses[WEFT_LOSS_RING_FULL] = 0;
  }
  for (unsigned i = 0; i < WEFT_LOSS_WIRE_COUNT; i++)
    any |= losses[i] != 0;
  return any;
}

/* WEFT_E_FULL: no slot is free. */
static int open_batch (car_drain_t *self)
{
  if (self->open)
    return 0;
  void *buffer = shm_spool_reserve (self->reader, &self->slot);
  if (!buffer)
    return WEFT_E_FULL;
  self->head.number = self->number + 1;
  self->head.from_ns = self->covered_ns;
  self->head.to_ns = self->covered_ns;
  self->head.reports = 0;
  memset (self->head.losses, 0, sizeof self->head.losses);
  weft_anchor_take (&self->head.anchor);
  int status = weft_batch_writer_begin (self->desk->writer, buffer, WEFT_BATCH_MAX, &self->head);
  if (status < 0)
    return status;
  self->open = 1;
  return 0;
}

static int close_batch (car_drain_t *self)
{
  shm_status_t status;
  size_t size;
  if (!self->open)
    return 0;
  self->open = 0;
  gather_losses (self, self->head.losses, &status);
  self->head.to_ns = weft_boot_ns ();
  self->head.reports = weft_batch_writer_count (self->desk->writer);
  int result = weft_batch_writer_finish (self->desk->writer, &self->head, &size);
  if (result < 0) {
    self->own[WEFT_LOSS_UNDECODABLE] += self->head.reports;
    return result;
  }
  shm_spool_seal (self->reader, self->slot, self->head.number, size, status.lost); /* D6 */
  self->number = self->head.number;
  self->covered_ns = self->head.to_ns;
  memcpy (self->told, status.lost, sizeof self->told);
  memset (self->own, 0, sizeof self->own);
  self->corrupt_told = shm_reader_corrupt (self->reader);
  self->broken_told = shm_reader_broken (self->reader);
  self->spool_full = 0;
  return 0;
}

/* Bytes in the fullest ring. One that lies holds something that the reader has
 * to look at, and is no reason to hurry. */
static uint64_t fullest_ring (car_drain_t *self)
{
  uint64_t most = 0;
  for (unsigned i = 0; i < SHM_RINGS; i++) {
    shm_ring_t *ring = shm_ring (shm_reader_base (self->reader), i);
    uint64_t fill =
        __atomic_load_n (&ring->head, __ATOMIC_RELAXED) - __atomic_load_n (&ring->tail, __ATOMIC_RELAXED);
    if (fill > SHM_RING_SIZE)
      fill = 1;
    if (fill > most)
      most = fill;
  }
  return most;
}

/* One report into the open batch. One that does not fit any more closes it, and
 * comes again for the next: until a batch holds it, it is in its ring (D6). */
static void add_report (car_drain_t *self, weft_report_t *report, unsigned *batches)
{
  size_t size;
  if (report->kind != WEFT_REPORT_OPAQUE) { /* named by the reader */
    report->name = car_names_template (self->desk->names, report->name, report->name_size, &size);
    report->name_size = (uint16_t) size;
  }
  int status = weft_batch_writer_add (self->desk->writer, report);
  if (status == WEFT_E_FULL && weft_batch_writer_count (self->desk->writer) > 0) {
    shm_reader_unread (self->reader);
    close_batch (self);
    ++*batches;
  } else if (status < 0)
    self->own[WEFT_LOSS_UNDECODABLE]++;
}

int car_drain_collect (car_drain_t *self, pid_t pid)
{
  weft_report_t report;
  shm_status_t status;
  uint64_t losses[WEFT_LOSS_WIRE_COUNT];
  unsigned batches = 0;
  int more = 0, any = 0;
  uint64_t fill = fullest_ring (self);
  shm_reader_break_locks (self->reader, pid);
  if (fill > 0)
    while (batches < CAR_DRAIN_BATCHES_MAX) {
      if (open_batch (self) < 0) {
        self->spool_full = 1;
        return CAR_DRAIN_INTERVAL_MS;
      }
      more = shm_reader_next (self->reader, &report);
      if (more != 1)
        break;
      WEFT_FAULT_POINT ("ring-read");
      any = 1;
      add_report (self, &report, &batches);
    }
  int lost = gather_losses (self, losses, &status);
  if (lost && open_batch (self) < 0)
    self->spool_full = 1;
  if (self->open && (lost || weft_batch_writer_count (self->desk->writer) > 0))
    close_batch (self);
  self->open = 0; /* one without reports is begun again: until then the desk is somebody else's */
  if (!any)       /* whatever the heads say */
    return CAR_DRAIN_INTERVAL_MS;
  if (more == 1 || fill >= SHM_RING_SIZE / 2)
    return 0;
  return fill >= SHM_RING_SIZE / 8 ? CAR_DRAIN_HURRY_MS : CAR_DRAIN_INTERVAL_MS;
}

int car_drain_push (car_drain_t *self, car_push_t push, void *to, uint64_t mono_ns)
{
  uint64_t number;
  size_t size;
  if (self->waiting_since_ns && mono_ns - self->waiting_since_ns > self->repush_ms * WEFT_NS_PER_MS) {
    self->pushed = 0;
    self->waiting_since_ns = mono_ns;
    if (self->repush_ms < CAR_DRAIN_REPUSH_MAX_MS)
      self->repush_ms *= 2;
  }
  for (unsigned i = 0; i < SHM_SPOOL_SLOTS; i++) {
    const void *batch = shm_spool_next (self->reader, self->pushed, &number, &size);
    if (!batch)
      return 0;
    int status = push (to, batch, size);
    if (status < 0)
      return WEFT_E_BUSY;
    WEFT_FAULT_POINT ("push");
    self->pushed = number;
    if (self->waiting_since_ns == 0)
      self->waiting_since_ns = mono_ns;
  }
  return shm_spool_next (self->reader, self->pushed, &number, &size) ? WEFT_E_BUSY : 0;
}

void car_drain_acked (car_drain_t *self, const uint8_t start[WEFT_UUID_SIZE], uint64_t number,
                      uint64_t mono_ns)
{
  if (memcmp (start, self->start, WEFT_UUID_SIZE) != 0 || number > self->number)
    return;
  if (number > self->pushed)
    number = self->pushed; /* D5 */
  if (shm_spool_release (self->reader, number) == 0)
    return;
  self->repush_ms = CAR_DRAIN_REPUSH_MS;
  self->waiting_since_ns = car_drain_waiting (self) > 0 ? mono_ns : 0;
}

void car_drain_repush (car_drain_t *self)
{
  self->pushed = 0;
  self->repush_ms = CAR_DRAIN_REPUSH_MS;
}

unsigned car_drain_waiting (car_drain_t *self)
{
  return shm_spool_used (self->reader);
}

uint64_t car_drain_written (car_drain_t *self)
{
  shm_status_t status;
  shm_reader_status (self->reader, &status);
  uint64_t sum = shm_reader_written (self->reader) + shm_reader_broken_ever (self->reader);
  for (unsigned i = 0; i < WEFT_LOSS_WIRE_COUNT; i++)
    sum += status.lost[i];
  return sum;
}

uint64_t car_drain_number (const car_drain_t *self)
{
  return self->number;
}
