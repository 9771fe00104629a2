/* SPDX-License-Identifier: Apache-2.0 */
/* limits: every bound of weft with its reason. Header only, libc free: the
 * probe, the sidecar and the controller all include it. */
#ifndef WEFT_LIMITS_H
#define WEFT_LIMITS_H

/* ---- identity ---------------------------------------------------------- */
#define WEFT_TASK_ID_SIZE   16 /* bytes; trace-id of a W3C traceparent */
#define WEFT_UUID_SIZE      16
#define WEFT_SERVICE_MAX    64 /* bytes; longer service names are cut, they must fit a topic */
#define WEFT_HOST_MAX       64
#define WEFT_VM_VERSION_MAX 48

/* ---- names ------------------------------------------------------------- */
#define WEFT_NAME_MAX   160 /* bytes of "METHOD /path" kept by the probe; longer is cut */
#define WEFT_METHOD_MAX 16  /* bytes; longer methods are no HTTP we speak */
#define WEFT_MATCH_MAX  128 /* bytes of one --match pattern */
#define WEFT_HEADER_MAX 32  /* bytes of a field name with its end; longer names are not read */

/* ---- instructions ------------------------------------------------------ */
#define WEFT_INSTRUCTIONS_MAX 16  /* live at once in one controller: each costs a scan per root decision */
#define WEFT_SELECTOR_MAX     512 /* bytes of one selector text */
#define WEFT_SELECTORS_MAX    64 /* alternatives ("or") in one selector list: the VMs that one profile names */
#define WEFT_NETWORKS_MAX     16 /* of --embed-to in one instruction; each costs a look per insertion */
#define WEFT_EXCLUDES_MAX     32 /* patterns in one instruction; each costs a look per root decision */
#define WEFT_HEARTBEAT_MS     1000
#define WEFT_LEASE_MS         5000 /* default; five heartbeats may be lost */
#define WEFT_LEASE_MIN_MS     2000
#define WEFT_LEASE_MAX_MS     60000
#define WEFT_FOR_MAX_MS       86400000u /* one day: a profile window is no monitoring */

/* ---- report path ------------------------------------------------------- */
#define WEFT_BATCH_MAX         65536 /* bytes; 64 KiB frames reach the bus' best rate */
#define WEFT_BATCH_REPORTS_MAX 4096
#define WEFT_BATCH_STRINGS_MAX 1024
#define WEFT_FRAME_MAX         131072 /* bytes of anything accepted from a socket; checked before allocation */
#define WEFT_REPORT_MAX        256    /* encoded bytes of one report without its strings */

/* ---- controller -------------------------------------------------------- */
#define WEFT_INSTANCES_MAX         4096
#define WEFT_OPEN_TASKS_LEAST      1024     /* what one second of a modest service needs until it settles */
#define WEFT_SUBTASKS_PER_TASK_MAX 16384    /* beyond: counted as truncated, the tree says so */
#define WEFT_SENDINGS_MAX          64       /* of one request id that is passed on; beyond: truncated */
#define WEFT_OPEN_TASKS_MAX        1048576  /* in memory unless told; the oldest is written out first */
#define WEFT_OPEN_TASKS_MOST       16777216 /* a table of them has 32 bits of hash to go by */
#define WEFT_SETTLE_MS             2000 /* a task nobody reported on for this long is written to the store */
#define WEFT_TASK_AGE_MS           60000 /* reported on all the time, a task is written in parts, one in so long */
#define WEFT_CONTROLLER_IDLE_MS    60000 /* an autostarted controller without instance or client ends */

/* ---- control socket, journal, presence --------------------------------- */
#define WEFT_REPLY_MAX            (64 << 20) /* bytes of one frame a client takes from its controller */
#define WEFT_EACH_MAX             100000     /* executions in one reply */
#define WEFT_PING_MS              3000 /* a busy controller, another host, a handshake; one that is dead refuses at once */
#define WEFT_REPLY_MS             10000 /* the longest question: an analysis over a full store */
#define WEFT_AUTOSTART_MS         5000  /* a started controller listens within this, or says why not */
#define WEFT_SILENT_MS            11000 /* two of the acknowledgements that come every 5 s are missing */
#define WEFT_LOST_MS              60000 /* silent so long: taken for gone, until it speaks again */
#define WEFT_SETTLE_EVERY_MS      500
#define WEFT_SUMS_EVERY_MS        2000  /* at the latest; at each look when a segment was begun */
#define WEFT_CLAIMS_MAX           64    /* clients that work with instances at once */
#define WEFT_CLAIM_MARGIN_MS      30000 /* what a window needs around itself; then its owner is dead */
#define WEFT_STOPPED_MAX          64 /* stopped instructions whose acknowledgements can still be asked for */
#define WEFT_JOURNAL_SEGMENT_MAX  (64u << 20)
#define WEFT_JOURNAL_PARTS        4 /* segments of a full journal: what goes at once is a part of it */
#define WEFT_JOURNAL_MAX          (256ull << 20)     /* minutes at full load, months at rest */
#define WEFT_JOURNAL_MAX_LEAST    (1ull << 20)       /* four segments of a few batches each */
#define WEFT_JOURNAL_AGE_MS       (7ull * 86400000u) /* a week: last Monday can be replayed */
#define WEFT_JOURNAL_AGE_LEAST_MS 60000u             /* older than anything that is still being correlated */
#define WEFT_JOURNAL_AGE_MOST_MS  (366ull * 86400000u)
#define WEFT_STORE_MAX            (4ull << 30)        /* fifteen million tasks of five subtasks */
#define WEFT_STORE_TASKS_MAX      (16 << 20)          /* their ids are in memory: 11 to 21 bytes each */
#define WEFT_STORE_MAX_LEAST      (16ull << 20)       /* some bursts of tasks: they go as a whole */
#define WEFT_STORE_AGE_MS         (30ull * 86400000u) /* a month: this week beside the last ones */
#define WEFT_STORE_AGE_MOST_MS    (3660ull * 86400000u)
#define WEFT_JOURNAL_WARM_MS      600000u /* written so lately, a segment's pages are in memory still */
#define WEFT_CHECKPOINTS_MAX      64      /* places in the journal of which one becomes the checkpoint */
#define WEFT_BATCH_AHEAD_MAX      64      /* numbers taken ahead of a gap: what a spool can hold */
#define WEFT_COMPLAIN_EVERY_MS    10000   /* one line on bad frames at most this often */
#define WEFT_SERVICE_KEEP         (16 << 20) /* free memory that the controller keeps, for each thread that has any */
#define WEFT_INTAKE_BURST         64         /* report frames between two looks at the other sockets */
#define WEFT_ACK_WAIT_MS          3000   /* how long a verb waits for instances to acknowledge */
#define WEFT_LEAVE_WAIT_MS        5000   /* how long a verb waits for instances to restore their VM */
#define WEFT_LEAVING_MS           10000u /* told to leave and there for longer: it stays, and may be claimed */
#define WEFT_WINDOW_SETTLE_MS     100 /* before a window: what the VMs are at may end, its context is unknown */
#define WEFT_WINDOW_GRACE_MS      200   /* after a window: what was started in it may answer */
#define WEFT_WINDOW_WAIT_MS       500   /* at most so long */
#define WEFT_WINDOW_REPORT_MS     900   /* the report is built this long after the window at the latest */
#define WEFT_PROFILE_MS           10000 /* a window nobody gave a length */
#define WEFT_OPTIONS_MAX          64    /* options on one command line */
#define WEFT_OPEN_BYTES_MAX                                                                                  \
  (1ull << 30) /* what open tasks and their reports take; beyond, the oldest task is written out first */
#define WEFT_OPEN_BYTES_LEAST (16ull << 20) /* some batches, and the tasks that they begin */
#define WEFT_OPEN_BYTES_MOST  (64ull << 30) /* a line of a report has a number of 32 bits */
#define WEFT_EVICTED_MAX      65536         /* evicted and not yet collected: beyond, no batch is taken */
#define WEFT_SHED_REMEMBERED  262144        /* shed task ids remembered in each of two generations */
#define WEFT_SHED_MEMORY_MS   10000         /* a late copy of a shed task comes within this */
#define WEFT_SHED_BACKLOG_MS  2000          /* longer than the spools of many instances take after a pause */
#define WEFT_NAMES_MAX        131072 /* distinct texts kept; further names share one, memory stays bounded */
#define WEFT_ADDRESSES_MAX    65536  /* distinct server addresses kept; further ones are not told apart */
#define WEFT_BARE_MAX         65536  /* bare connections remembered; the oldest of a set gives way */
#define WEFT_BARE_SLACK_MS    1000   /* clocks of two hosts; a closed port is not used again for a minute */
#define WEFT_BOOTS_MAX        4096   /* hosts: no more than instances */
#define WEFT_LOSS_INTERVALS_MAX                                                                              \
  16384 /* beyond, neighbours are joined: the window widens, no loss is forgotten */
#define WEFT_ANALYSE_TREES_READ                                                                              \
  16384 /* stored executions read for one analysis; of more the rest is counted */
#define WEFT_ANALYSE_NAMES_MAX   512   /* task names told apart in one analysis */
#define WEFT_STARTS_MAX          65536 /* probes (and their restarts) whose batch numbers are remembered */
#define WEFT_SINK_RUN_MS         50    /* in one go; whoever asks meanwhile waits so long */
#define WEFT_SINK_MAX            4096 /* executions of one transaction; what a full disk can hold back here */
#define WEFT_ANALYSE_ORPHANS_MAX 4096 /* (service, reason) pairs told apart; services come from others */

/* ---- record and replay --------------------------------------------------- */
#define WEFT_RECORD_CHUNK_MAX                                                                                \
  (1u << 20) /* bytes of the journal in one answer: a slow reader costs the controller no more at once */
#define WEFT_RECORD_POLL_MS 100 /* between two looks when nothing was new */
#define WEFT_REPLAY_REPEAT_MAX                                                                               \
  4096                             /* each repeat has instances of its own: no more than WEFT_INSTANCES_MAX */
#define WEFT_REPLAY_SPEED_MAX 1000 /* times the original pace; beyond, `max` is meant */
#define WEFT_REPLAY_WINDOW    64 /* batches that may wait for their acknowledgement: 4 MiB, which caches hold */
#define WEFT_REPLAY_RESEND_MS 1000       /* not acknowledged for so long: sent again */
#define WEFT_REPLAY_STALL_MS  30000      /* nothing acknowledged for so long: the replay ends, and says so */
#define WEFT_REPLAY_TASKS_MAX (1u << 24) /* distinct task ids that are counted: 512 MiB at most */

/* ---- strangers, keys, audit -------------------------------------------- */
#define WEFT_KEY_FILE_MAX 4096 /* bytes of one key file: two lines and comments */
#define WEFT_KEYS_MAX     4096 /* keys admitted in one role: one for every instance */
#define WEFT_KEY_NAME_MAX 48   /* bytes; it stands in the audit log and in a ZAP user id */
#define WEFT_WHO_MAX      112  /* bytes; "key " and a name, or uid and pid */
#define WEFT_HANDSHAKE_MS 3000 /* a peer that has not said who it is by then is dropped */
#define WEFT_BACKLOG      1024 /* connections the kernel holds between two looks of libzmq */
#define WEFT_CONNECTIONS_MAX                                                                                 \
  12288 /* open at once on the three sockets; two each for every instance, and clients */
#define WEFT_DESCRIPTORS_MAX 16384      /* of the controller: the above, and its files */
#define WEFT_RECEIVE_HWM     100        /* frames of one peer in the queue: 12.5 MiB at most */
#define WEFT_GUARD_BURST     256        /* handshakes judged between two looks at the other sockets */
#define WEFT_CONTROL_BURST   64         /* requests answered between two looks at the other sockets */
#define WEFT_REQUESTS_RATE   500        /* a second from one client; a verb that waits asks 100 times */
#define WEFT_REQUESTS_BURST  1000       /* at once from one client that was quiet before */
#define WEFT_REQUESTS_PEERS  256        /* clients whose rate is known; the one quiet longest gives way */
#define WEFT_AUDIT_FILE_MAX  (8u << 20) /* bytes; then audit.log becomes audit.log.1 */
#define WEFT_AUDIT_LINE_MAX  16384      /* bytes; of a longer one the arguments are left out */
#define WEFT_AUDIT_FILES_MAX 4          /* audit.log.1 to .4 are kept: some 200,000 lines */

/* ---- spans for others (OTLP) -------------------------------------------- */
#define WEFT_OTLP_SPANS_MAX        2048 /* in one message: some 600 KiB */
#define WEFT_EXPORT_SPANS_MAX      262144 /* that wait for a collector: some 64 MiB; what comes then is given up */
#define WEFT_EXPORT_LINGER_MS      500 /* a message that is not full waits so long for more */
#define WEFT_EXPORT_RETRY_LEAST_MS 250 /* pause before a message is sent again; doubles up to the next */
#define WEFT_EXPORT_RETRY_MOST_MS  16000
#define WEFT_EXPORT_AFTER_MOST_MS  60000 /* what a collector's Retry-After can ask for */
#define WEFT_EXPORT_GIVE_UP_MS     60000 /* a message that nobody took for so long; others wait behind it */
#define WEFT_EXPORT_END_MS         3000 /* the controller ends: what a collector has not taken by then is given up */
#define WEFT_COLLECTOR_CONNECT_MS  3000
#define WEFT_COLLECTOR_MS          10000 /* for one message */
#define WEFT_COLLECTOR_ANSWER_MAX  4096  /* bytes of an answer that are looked at */
#define WEFT_COLLECTOR_FIELD_MAX   2048  /* bytes of one header field of the user's: a token */

#endif
