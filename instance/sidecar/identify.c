/* SPDX-License-Identifier: Apache-2.0 */
#include "identify.h"

#include <jansson.h>
#include <string.h>

#include "../../common/ids.h"
#include "processes.h"
#include "target.h"
#include "way_in/check.h"

/*   {"pid":4188,"vm":"jvm","version":"17.0.15","service":"orders","user":"app",
 *    "listens":":8080","way_in":"attach protocol","joinable":true,"joined":false,
 *    "instance":null,"why":null,"error":null}
 *
 * `why` is "reason; remedy"; `error` the whole line for a person. */
static void print (FILE *out, const car_target_t *target)
{
  car_check_t check;
  car_check (target, 0, &check);
  const char *service = check.service[0] ? check.service : target->service;
  char uuid[37], user[64], line[CAR_WHY_MAX + 128];
  weft_uuid_put (uuid, check.instance);
  car_target_user (target->uid, user, sizeof user);
  car_check_line (target, check.why, line, sizeof line);
  int refused = check.way == CAR_WAY_NONE;
  json_t *object =
      json_pack ("{s:i, s:s, s:s, s:s, s:s, s:s, s:s, s:b, s:b, s:s?, s:s?, s:s?}", "pid", (int) target->pid,
                 "vm", target->vm, "version", target->version, "service", service, "user", user, "listens",
                 target->listens, "way_in", refused ? "no" : check.name, "joinable", !refused, "joined",
                 check.way == CAR_WAY_JOINED, "instance", check.way == CAR_WAY_JOINED ? uuid : NULL, "why",
                 refused ? check.why : NULL, "error", refused ? line : NULL);
  if (!object)
    return;
  json_dumpf (object, out, JSON_COMPACT);
  fputc ('\n', out);
  json_decref (object);
}

int car_identify (FILE *out, pid_t pid, const char *service)
{
  car_target_t target;
  int status = car_target_identify (pid, service, &target);
  if (status == 0)
    print (out, &target);
  return status;
}

static void identify_vm (void *out, pid_t pid)
{
  if (car_target_is_vm (pid))
    car_identify (out, pid, NULL);
}

void car_identify_all (FILE *out)
{
  car_processes_each (identify_vm, out);
}
