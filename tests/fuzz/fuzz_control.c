/* SPDX-License-Identifier: Apache-2.0 */
/* What a client of the control socket may send: answered or refused with a
 * reason, whatever it is; what it asks for stays within the limits. */
#include "../../common/status.h"
#include "../../controller/service/claims.h"
#include "../../controller/service/requests.h"
#include "fuzz.h"

#define INPUTS_A_HOUSE 256 /* then another one: the state stays small, and is not always new */

static ctl_house_t house;

static void pull_down (void)
{
  ctl_claims_destroy (&house.claims);
  ctl_correlate_destroy (&house.correlate);
  ctl_instructions_destroy (&house.instructions);
  ctl_instances_destroy (&house.instances);
}

static void build (void)
{
  weft_up_message_t hello = {.kind = WEFT_UP_HELLO, .pid = 4121, .vm = "jvm", .service = "orders"};
  ctl_instance_t *instance;
  house.instances = ctl_instances_new ();
  house.instructions = ctl_instructions_new (100, 0);
  house.correlate = ctl_correlate_new (house.instances, 0);
  house.claims = ctl_claims_new ();
  hello.instance[0] = 1;
  FUZZ_MUST (house.claims && house.correlate && ctl_instances_take (house.instances, &hello, &instance) == 0);
}

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  static unsigned inputs;
  if (inputs++ % INPUTS_A_HOUSE == 0) {
    if (house.instances)
      pull_down ();
    else
      atexit (pull_down);
    build ();
  }
  ctl_reply_t reply = {0};
  uint32_t live = 0;
  FUZZ_MUST (ctl_requests_answer (&house, (const char *) data, size, &reply) != WEFT_E_NOMEM);
  json_t *ok = json_object_get (reply.body, "ok");
  FUZZ_MUST (json_is_boolean (ok));
  FUZZ_MUST (json_is_true (ok) || json_is_string (json_object_get (reply.body, "why")));
  ctl_instructions_live (house.instructions, &live);
  FUZZ_MUST (live <= WEFT_INSTRUCTIONS_MAX);
  ctl_reply_clear (&reply);
  return 0;
}
