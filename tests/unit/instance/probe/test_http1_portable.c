/* SPDX-License-Identifier: Apache-2.0 */
/* http1 without vector instructions: what other processors run, under the same tests. */
#undef __SSE2__
#include "../../../../instance/probe/fields.c"
#include "../../../../instance/probe/http1.c"
#include "../../../../instance/probe/start_line.c"
#include "test_http1.c"
