/* SPDX-License-Identifier: Apache-2.0 */
/* traceparent without vector instructions: what other processors run, under the same tests. */
#undef __SSE2__
#include "../../../../instance/probe/traceparent.c" // NOLINT(bugprone-suspicious-include)
#include "test_traceparent.c"                       // NOLINT(bugprone-suspicious-include)
