/* SPDX-License-Identifier: Apache-2.0 */
#include "peers.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../common/clocks.h"
#include "mix.h"

#define ADDRESS_SLOTS (WEFT_ADDRESSES_MAX * 2u)
#define WAYS          4u
#define BARE_SETS     (WEFT_BARE_MAX / WAYS)

#define CLASS_UNMATCHED 1u
#define CLASS_WANTED    2u

#define FAMILY_UNIX 1
#define OPEN        UINT64_MAX
#define TEXT_MAX    64
#define SLACK_NS    (WEFT_BARE_SLACK_MS * WEFT_NS_PER_MS)

typedef struct {
  weft_address_t address;
  uint8_t captured;
  const char *text; /* NULL: not asked for yet */
} address_t;

/* Four places a set; the one written longest ago gives way. One for each time that the two ends were
 * connected. */
typedef struct {
  uint64_t connection;        /* 0: free */
  uint64_t from_ns, until_ns; /* wall clock; 0: not known, OPEN: to this day */
  uint32_t written;
  uint16_t instance;
  uint8_t classes;
} bare_t;

struct ctl_peers_t {
  ctl_names_t *names;
  ctl_seed_t seed;
  address_t *address; /* number - 1 */
  uint32_t count, capacity;
  uint32_t slot[ADDRESS_SLOTS]; /* number, 0: free */
  uint32_t bare_written;
  uint64_t told_ns[WEFT_INSTANCES_MAX], idle_ns[WEFT_INSTANCES_MAX]; /* by instance */
  bare_t bare[BARE_SETS][WAYS];
};

ctl_peers_t *ctl_peers_new (ctl_names_t *names)
{
  ctl_peers_t *self = calloc (1, sizeof *self);
  if (!self)
    return NULL;
  self->names = names;
  ctl_seed_take (&self->seed);
  return self;
}

void ctl_peers_destroy (ctl_peers_t **self_p)
{
  if (!*self_p)
    return;
  free ((*self_p)->address);
  free (*self_p);
  *self_p = NULL;
}

static int is_ip (const weft_address_t *address)
{
  return address->family > FAMILY_UNIX;
}

/* The family is left out: a v4 peer of a dual-stack socket may come as 6. */
static uint64_t mix (const ctl_peers_t *self, const weft_address_t *address)
{
  return ctl_mix_fold (ctl_mix_16 (&self->seed, address->ip) ^ address->port, self->seed.b);
}

static int same (const weft_address_t *a, const weft_address_t *b)
{
  uint64_t left[2], right[2];
  memcpy (left, a->ip, sizeof left);
  memcpy (right, b->ip, sizeof right);
  return ((left[0] ^ right[0]) | (left[1] ^ right[1])) == 0 && a->port == b->port;
}

static int room_for_one (ctl_peers_t *self)
{
  if (self->count < self->capacity)
    return 1;
  if (self->count == WEFT_ADDRESSES_MAX)
    return 0;
  uint32_t capacity = self->capacity ? self->capacity * 2 : 256;
  address_t *grown = realloc (self->address, capacity * sizeof *grown);
  if (!grown)
    return 0;
  self->address = grown;
  self->capacity = capacity;
  return 1;
}

/* `mixed`: of the address. */
static inline uint32_t number_of (ctl_peers_t *self, const weft_address_t *address, uint64_t mixed)
{
  uint32_t at = (uint32_t) mixed & (ADDRESS_SLOTS - 1);
  for (; self->slot[at]; at = (at + 1) & (ADDRESS_SLOTS - 1))
    if (same (&self->address[self->slot[at] - 1].address, address))
      return self->slot[at];
  if (!room_for_one (self))
    return 0;
  self->address[self->count] = (address_t){.address = *address};
  return self->slot[at] = ++self->count;
}

static inline uint64_t connection_of (const ctl_peers_t *self, uint64_t sender, uint64_t receiver)
{
  uint64_t hash = ctl_mix_fold (sender ^ self->seed.a, receiver | 1);
  return hash ? hash : 1;
}

uint32_t ctl_peers_address (ctl_peers_t *self, const weft_address_t *address)
{
  return is_ip (address) ? number_of (self, address, mix (self, address)) : 0;
}

uint64_t ctl_peers_connection (const ctl_peers_t *self, const weft_address_t *sender,
                               const weft_address_t *receiver)
{
  if (!is_ip (sender) || !is_ip (receiver))
    return 0;
  return connection_of (self, mix (self, sender), mix (self, receiver));
}

uint64_t ctl_peers_captured (ctl_peers_t *self, const weft_address_t *peer, const weft_address_t *local)
{
  if (!is_ip (local))
    return 0;
  uint64_t mixed = mix (self, local);
  uint32_t number = number_of (self, local, mixed);
  if (number)
    self->address[number - 1].captured = 1;
  return is_ip (peer) ? connection_of (self, mix (self, peer), mixed) : 0;
}

uint32_t ctl_peers_sent_to (ctl_peers_t *self, const weft_address_t *local, const weft_address_t *peer,
                            uint64_t *ret_connection)
{
  *ret_connection = 0;
  if (!is_ip (peer))
    return 0;
  uint64_t mixed = mix (self, peer);
  if (is_ip (local))
    *ret_connection = connection_of (self, mix (self, local), mixed);
  return number_of (self, peer, mixed);
}

int ctl_peers_captures (const ctl_peers_t *self, uint32_t number)
{
  return number && number <= self->count && self->address[number - 1].captured;
}

static void write_text (const weft_address_t *address, char out[TEXT_MAX])
{
  static const uint8_t v4_mapped[12] = {[10] = 0xff, [11] = 0xff};
  char ip[INET6_ADDRSTRLEN] = "";
  if (memcmp (address->ip, v4_mapped, sizeof v4_mapped) == 0) {
    inet_ntop (AF_INET, address->ip + 12, ip, sizeof ip);
    snprintf (out, TEXT_MAX, "%s:%u", ip, address->port);
  } else {
    inet_ntop (AF_INET6, address->ip, ip, sizeof ip);
    snprintf (out, TEXT_MAX, "[%s]:%u", ip, address->port);
  }
}

const char *ctl_peers_text (ctl_peers_t *self, uint32_t number)
{
  char text[TEXT_MAX];
  uint32_t id;
  if (number == 0 || number > self->count)
    return "unknown peer";
  address_t *address = &self->address[number - 1];
  if (!address->text) {
    write_text (&address->address, text);
    if (ctl_names_id (self->names, text, strlen (text), &id) == 0)
      address->text = ctl_names_text (self->names, id);
  }
  return address->text;
}

void ctl_peers_told (ctl_peers_t *self, uint16_t instance, uint64_t wall_ns)
{
  if (wall_ns > self->told_ns[instance])
    self->told_ns[instance] = wall_ns;
}

void ctl_peers_idle (ctl_peers_t *self, uint16_t instance)
{
  self->idle_ns[instance] = self->told_ns[instance];
}

static uint64_t until (const ctl_peers_t *self, const bare_t *bare)
{
  uint64_t idle_ns = self->idle_ns[bare->instance];
  return bare->until_ns == OPEN && idle_ns > bare->from_ns ? idle_ns : bare->until_ns;
}

/* The place of what is said at wall_ns: in an interval that holds it, or that may be drawn up to it. */
static int belongs (const ctl_peers_t *self, const bare_t *bare, int is_end, uint64_t wall_ns)
{
  if (is_end)
    return bare->until_ns == OPEN && bare->from_ns <= wall_ns;
  if (until (self, bare) == OPEN)
    return 1;
  return wall_ns <= until (self, bare) && (wall_ns >= bare->from_ns || bare->from_ns == 0);
}

void ctl_peers_bare (ctl_peers_t *self, uint64_t connection, uint8_t reason, uint16_t instance,
                     uint64_t wall_ns)
{
  if (!connection)
    return;
  int is_end = reason == WEFT_REASON_NONE;
  bare_t *set = self->bare[connection % BARE_SETS], *place = &set[0];
  for (uint32_t i = 0; i < WAYS; i++) {
    if (set[i].connection == connection && belongs (self, &set[i], is_end, wall_ns)) {
      place = &set[i];
      break;
    }
    if (!set[i].connection || (place->connection && set[i].written < place->written))
      place = &set[i];
  }
  if (place->connection != connection || !belongs (self, place, is_end, wall_ns))
    *place = (bare_t){.connection = connection,
                      .instance = instance,
                      .from_ns = is_end ? 0 : wall_ns,
                      .until_ns = is_end ? wall_ns : OPEN};
  place->instance = instance;
  place->written = ++self->bare_written;
  if (is_end)
    place->until_ns = wall_ns;
  else {
    place->classes |= reason == WEFT_REASON_UNMATCHED ? CLASS_UNMATCHED : CLASS_WANTED;
    place->from_ns = wall_ns < place->from_ns || !place->from_ns ? wall_ns : place->from_ns;
  }
}

int ctl_peers_find_bare (const ctl_peers_t *self, uint64_t connection, uint64_t wall_ns, int *ret_wanted,
                         uint16_t *ret_instance)
{
  if (!connection)
    return 0;
  const bare_t *set = self->bare[connection % BARE_SETS];
  for (uint32_t i = 0; i < WAYS; i++) {
    uint64_t until_ns = until (self, &set[i]);
    if (set[i].connection == connection && set[i].classes && wall_ns + SLACK_NS >= set[i].from_ns &&
        (until_ns == OPEN || wall_ns <= until_ns + SLACK_NS)) {
      *ret_wanted = (set[i].classes & CLASS_WANTED) != 0;
      *ret_instance = set[i].instance;
      return 1;
    }
  }
  return 0;
}
