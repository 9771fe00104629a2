/* SPDX-License-Identifier: Apache-2.0 */
/* http1 without vector instructions: what other processors run, under the same tests. */
#undef __SSE2__
#include "../../../../instance/probe/fields.c"     // NOLINT(bugprone-suspicious-include)
#include "../../../../instance/probe/http1.c"      // NOLINT(bugprone-suspicious-include)
#include "../../../../instance/probe/start_line.c" // NOLINT(bugprone-suspicious-include)
#include "test_http1.c"                            // NOLINT(bugprone-suspicious-include)
