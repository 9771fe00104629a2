/* SPDX-License-Identifier: Apache-2.0 */
/* service_name: what people call a process: OTEL_SERVICE_NAME, else its
 * systemd unit, else main class, jar, module or script, else its comm. */
#ifndef CAR_SERVICE_NAME_H
#define CAR_SERVICE_NAME_H

#include "target.h"

/* Fills target->service; the rest of target is known already. `given` wins. */
void car_service_name (car_target_t *target, const char *given);
/* The name in a command line (count NUL-terminated words, one after another
 * in `words`). Exposed for tests. `out` is "" when there is none. */
void car_service_from_words (const char *vm, const char *words, size_t size, char out[WEFT_SERVICE_MAX]);
/* The unit in a cgroup file's text, "" if there is none. */
void car_service_from_cgroup (const char *text, char out[WEFT_SERVICE_MAX]);

#endif
