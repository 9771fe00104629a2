/* SPDX-License-Identifier: Apache-2.0 */
/* protocols: what the stream of a peer that is not spoken to in HTTP/1 is taken for.
 * A guess from a port and the first bytes (instance/probe/guess.h), for people. Numbers
 * are part of PROTOCOL.md ("rest") and of the shared memory; a retired one is never used
 * again. Header only, libc free. */
#ifndef WEFT_PROTOCOLS_H
#define WEFT_PROTOCOLS_H

#define WEFT_PROTOCOL_MAP(XX)                                                                                \
  XX (0, NONE, "unknown")                                                                                    \
  XX (1, TCP, "tcp") /* nothing is known but the family */                                                   \
  XX (2, UNIX, "unix")                                                                                       \
  XX (3, HTTP, "http") /* HTTP/1 that could not be followed */                                               \
  XX (4, HTTP2, "http/2")                                                                                    \
  XX (5, TLS, "tls")                                                                                         \
  XX (6, TUNNEL, "tunnel") /* behind a CONNECT or an Upgrade */                                              \
  XX (7, DNS, "dns")       /* a name was looked up */                                                        \
  XX (8, POSTGRESQL, "postgresql")                                                                           \
  XX (9, MYSQL, "mysql")                                                                                     \
  XX (10, REDIS, "redis")                                                                                    \
  XX (11, KAFKA, "kafka")                                                                                    \
  XX (12, MONGODB, "mongodb")                                                                                \
  XX (13, AMQP, "amqp")                                                                                      \
  XX (14, NATS, "nats")                                                                                      \
  XX (15, MEMCACHED, "memcached")                                                                            \
  XX (16, SSH, "ssh")                                                                                        \
  XX (17, SQLSERVER, "sqlserver")                                                                            \
  XX (18, ORACLE, "oracle")                                                                                  \
  XX (19, CASSANDRA, "cassandra")                                                                            \
  XX (20, ZOOKEEPER, "zookeeper")                                                                            \
  XX (21, LDAP, "ldap")                                                                                      \
  XX (22, SMTP, "smtp")                                                                                      \
  XX (23, MQTT, "mqtt")
typedef enum {
#define XX(number, name, text) WEFT_PROTOCOL_##name = number,
  WEFT_PROTOCOL_MAP (XX)
#undef XX
#define XX(number, name, text) +1
      WEFT_PROTOCOL_COUNT = 0 WEFT_PROTOCOL_MAP (XX)
#undef XX
} weft_protocol_t;

/* Never NULL; a number that is none of them reads "unknown". */
static inline const char *weft_protocol_text (unsigned protocol)
{
  static const char *const text[] = {
#define XX(number, name, word) [number] = word,
    WEFT_PROTOCOL_MAP (XX)
#undef XX
  };
  return text[protocol < WEFT_PROTOCOL_COUNT ? protocol : WEFT_PROTOCOL_NONE];
}

#endif
