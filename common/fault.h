/* SPDX-License-Identifier: Apache-2.0 */
/* fault: places at which a process can be told to die, for the fault tests. In
 * a build without WEFT_FAULTS (every build that is shipped) a point is nothing.
 *
 * WEFT_FAULT="<point>:<n>" in the environment of a `make FAULTS=1` build: the
 * n-th passage of that point raises SIGKILL, as a crash there would; "dies at
 * <point>:<n>" on stderr says that it was reached. Points:
 *
 *   sidecar     ring-read        a record is read, in no sealed batch yet
 *               batch-seal       a batch is sealed, what it told is not noted yet
 *               push             a batch is on the socket
 *               hold             any step of holding a thread of another process, and of what follows
 *   controller  journal-append   a frame is about to be written
 *               journal-appended it is written
 *               journal-emptied  the oldest segment holds nothing any more, and has its name still
 *               journal-renamed  it is the next one, and nothing is in it
 *               correlate        it is correlated
 *               ack              it is acknowledged */
#ifndef WEFT_FAULT_H
#define WEFT_FAULT_H

#ifdef WEFT_FAULTS
#define WEFT_FAULT_POINT(name) weft_fault_pass (name)
#else
#define WEFT_FAULT_POINT(name) ((void) 0)
#endif

/* One passage of `point`. One thread. */
void weft_fault_pass (const char *point);
/* 1: `order` ("point:n") means this passage, the count-th of `point`; 0: it does not, or is none. */
int weft_fault_means (const char *order, const char *point, unsigned long count);

#endif
