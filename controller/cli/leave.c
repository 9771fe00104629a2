/* SPDX-License-Identifier: Apache-2.0 */
#include "leave.h"

#include <string.h>

#include "../../common/clocks.h"
#include "../../common/ids.h"
#include "../../common/limits.h"
#include "../../common/log.h"
#include "orders.h"
#include "progress.h"
#include "roster.h"

#define POLL_MS  10
#define AGAIN_MS 1000

/* Counts who has left; with `complain`, says who has not. */
static void look (const ctl_roster_t *roster, const json_t *uuids, int complain, ctl_leave_t *ret_leave)
{
  *ret_leave = (ctl_leave_t){.asked = (uint32_t) json_array_size (uuids)};
  for (size_t n = 0; n < json_array_size (uuids); n++) {
    uint8_t uuid[WEFT_UUID_SIZE];
    const char *text = json_string_value (json_array_get (uuids, n));
    const ctl_instance_t *one =
        text && weft_uuid_get (uuid, text) == 0 ? ctl_roster_uuid (roster, uuid) : NULL;
    if (one && one->presence == CTL_INSTANCE_LEFT) {
      ret_leave->left++;
      ret_leave->slots_written += one->slots_written;
      ret_leave->slots_restored += one->slots_restored;
      ret_leave->slots_foreign += one->slots_foreign;
      ret_leave->threads_left += one->threads_left;
    } else if (one && complain) {
      weft_log_error (
          "%s (pid %lld) has not left within %d s; its probe idles once the lease is over, try `weft "
          "detach %lld` again",
          one->service, (long long) one->pid, WEFT_LEAVE_WAIT_MS / 1000, (long long) one->pid);
    }
  }
}

int ctl_leave (ctl_client_t *client, const json_t *uuids, const volatile int *stop, ctl_leave_t *ret_leave)
{
  uint64_t now_ns = weft_mono_ns (), again_ns = now_ns, end_ns = now_ns + WEFT_LEAVE_WAIT_MS * WEFT_NS_PER_MS;
  int rc = 0;
  ctl_progress_t progress;
  ctl_progress_begin (&progress);
  while (rc == 0) {
    if (weft_mono_ns () >= again_ns) { /* what is broadcast may be lost */
      json_t *list = json_deep_copy (uuids);
      rc = ctl_client_ask (client, json_pack ("{s:s, s:o}", "op", "detach", "uuids", list), NULL, NULL, NULL);
      again_ns += AGAIN_MS * WEFT_NS_PER_MS;
      if (rc < 0)
        break;
    }
    ctl_roster_t roster = {0};
    int late = weft_mono_ns () >= end_ns || (stop && *stop);
    if (late)
      ctl_progress_wipe (&progress);
    rc = ctl_roster_read (client, json_pack ("{s:O}", "uuids", uuids), &roster);
    if (rc == 0)
      look (&roster, uuids, late, ret_leave);
    ctl_roster_clear (&roster);
    if (rc == 0 && (late || ret_leave->left == ret_leave->asked))
      break;
    ctl_progress_say (&progress, "leaving: %u of %u VMs so far", ret_leave->left, ret_leave->asked);
    ctl_pause_ms (POLL_MS);
  }
  ctl_progress_wipe (&progress);
  return rc;
}

int ctl_leave_claim (ctl_client_t *client, const json_t *uuids, const json_t *joined, uint64_t for_ms,
                     uint32_t *ret_claim)
{
  json_t *reply = NULL;
  int rc = ctl_client_try (client,
                           json_pack ("{s:s, s:O, s:O, s:I}", "op", "claim", "uuids", uuids, "joined", joined,
                                      "for_ms", (json_int_t) for_ms),
                           WEFT_REPLY_MS, &reply);
  if (rc == 0)
    *ret_claim = (uint32_t) json_integer_value (json_object_get (reply, "claim"));
  json_decref (reply);
  return rc;
}

static int is_in (const json_t *list, const char *text)
{
  for (size_t n = 0; text && n < json_array_size (list); n++)
    if (strcmp (json_string_value (json_array_get (list, n)), text) == 0)
      return 1;
  return 0;
}

/* What is in `from` and in neither of the others goes into `to`. */
static void add_rest (json_t *to, const json_t *from, const json_t *but)
{
  for (size_t n = 0; n < json_array_size (from); n++) {
    json_t *one = json_array_get (from, n);
    const char *text = json_string_value (one);
    if (text && !is_in (to, text) && !is_in (but, text))
      json_array_append (to, one);
  }
}

/* Those of `joined` that the claim's end has not decided about. An instance that the controller has not heard
 * of yet is not in its answer, and leaves. */
static int let_go (ctl_client_t *client, const json_t *joined, const json_t *stays, json_t *leaving,
                   json_t *kept)
{
  json_t *rest = json_array (), *reply = NULL;
  int rc = 0;
  for (size_t n = 0; n < json_array_size (joined); n++) {
    json_t *one = json_array_get (joined, n);
    const char *text = json_string_value (one);
    if (!is_in (leaving, text) && !is_in (kept, text) && !is_in (stays, text))
      json_array_append (rest, one);
  }
  if (json_array_size (rest))
    rc = ctl_client_ask (client, json_pack ("{s:s, s:O, s:b}", "op", "detach", "uuids", rest, "when_free", 1),
                         NULL, NULL, &reply);
  if (rc == 0) {
    add_rest (kept, json_object_get (reply, "later"), leaving);
    add_rest (leaving, rest, kept);
  }
  json_decref (reply);
  json_decref (rest);
  return rc;
}

int ctl_leave_release (ctl_client_t *client, uint32_t claim, const json_t *joined, const volatile int *stop,
                       ctl_leave_t *ret_leave)
{
  json_t *reply = NULL, *leaving = json_array (), *kept = json_array ();
  /* A claim that has ended by itself, or went down with its controller, is no reason to stay. */
  if (claim && ctl_client_try (client, json_pack ("{s:s, s:I}", "op", "release", "claim", (json_int_t) claim),
                               WEFT_REPLY_MS, &reply) == 0) {
    add_rest (leaving, json_object_get (reply, "uuids"), NULL);
    add_rest (kept, json_object_get (reply, "kept"), NULL);
  }
  int rc = let_go (client, joined, json_object_get (reply, "stays"), leaving, kept);
  if (rc == 0 && json_array_size (leaving))
    rc = ctl_leave (client, leaving, stop, ret_leave);
  ret_leave->kept = (uint32_t) json_array_size (kept);
  json_decref (leaving);
  json_decref (kept);
  json_decref (reply);
  return rc;
}

int ctl_leave_verified (const ctl_leave_t *leave)
{
  return leave->left == leave->asked && leave->slots_restored == leave->slots_written &&
         leave->slots_foreign == 0 && leave->threads_left == 0;
}

void ctl_leave_print (FILE *out, const ctl_leave_t *leave)
{
  if (leave->kept)
    fprintf (out,
             "stayed in %u VM%s that somebody else still follows, left when that ends; `weft ls` shows it\n",
             leave->kept, leave->kept == 1 ? "" : "s");
  if (leave->kept && !leave->asked)
    return;
  fprintf (out, "left %u VM%s", leave->left, leave->left == 1 ? "" : "s");
  if (leave->left < leave->asked)
    fprintf (out, " of %u", leave->asked);
  fprintf (out, ", %s: %u of %u call slots as before",
           ctl_leave_verified (leave) ? "verified" : "NOT as before", leave->slots_restored,
           leave->slots_written);
  if (leave->slots_foreign)
    fprintf (out, ", %u rewritten by somebody else since and left alone", leave->slots_foreign);
  if (leave->threads_left)
    fprintf (out, ", %u thread%s of ours not ended; what is stopped (SIGSTOP) leaves when it goes on\n",
             leave->threads_left, leave->threads_left == 1 ? "" : "s");
  else
    fprintf (out, ", no thread of ours\n");
}
