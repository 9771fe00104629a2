/* SPDX-License-Identifier: Apache-2.0 */
#include "guess.h"

#include <string.h>

typedef struct {
  const uint8_t *at;
  size_t size;   /* that may be looked at */
  size_t length; /* of all that was written at once */
} bytes_t;

static bytes_t bytes_of (const void *data, size_t size)
{
  return (bytes_t){data, size < PROBE_GUESS_MAX ? size : PROBE_GUESS_MAX, size};
}

static uint32_t big32 (const bytes_t *b, size_t at)
{
  const uint8_t *p = b->at + at;
  return (uint32_t) p[0] << 24 | (uint32_t) p[1] << 16 | (uint32_t) p[2] << 8 | p[3];
}

static uint32_t little32 (const bytes_t *b, size_t at)
{
  return __builtin_bswap32 (big32 (b, at));
}

static int begins (const bytes_t *b, const char *text)
{
  size_t size = strlen (text);
  return b->size >= size && memcmp (b->at, text, size) == 0;
}

/* ---- one protocol each ---------------------------------------------------- */
static int is_tls (const bytes_t *b)
{
  /* a record of handshake or application data, SSL 3.0 to TLS 1.3 */
  return b->size >= 5 && (b->at[0] == 0x16 || b->at[0] == 0x17) && b->at[1] == 3 && b->at[2] <= 4;
}

/* Startup packets: length, then protocol 3.x or a request code 1234.5678 to 1234.5680. */
static int is_postgresql_start (const bytes_t *b)
{
  if (b->size < 8)
    return 0;
  uint32_t length = big32 (b, 0), code = big32 (b, 4);
  return length >= 8 && length <= 10000 && (code >> 16 == 3 || (code >= 80877102 && code <= 80877104));
}

/* Frontend messages: a letter and the length of what follows it, one behind the other. */
static int is_postgresql (const bytes_t *b)
{
  size_t at = 0;
  while (at + 5 <= b->size) {
    if (!strchr ("BCDEFHPQSXdcfp", b->at[at]))
      return 0;
    uint32_t length = big32 (b, at + 1);
    if (length < 4 || length > b->length - at - 1)
      return 0;
    at += 1 + (size_t) length;
    if (at == b->length)
      return 1;
  }
  return at > b->size;
}

/* 3 bytes of length, the number of the packet, protocol 10 and a version text. */
static int is_mysql_greeting (const bytes_t *b)
{
  return b->size >= 8 && b->at[3] == 0 && b->at[4] == 10 && b->at[5] >= '0' && b->at[5] <= '9' &&
         (little32 (b, 0) & 0xffffff) + 4 <= b->length;
}

static int is_mysql_command (const bytes_t *b)
{
  return b->size >= 5 && b->at[3] == 0 && b->at[4] && b->at[4] <= 0x1f &&
         (little32 (b, 0) & 0xffffff) + 4 == b->length;
}

/* An array of bulk strings, as every client library writes it. */
static int is_redis (const bytes_t *b)
{
  if (b->size < 4 || b->at[0] != '*' || b->at[1] < '1' || b->at[1] > '9')
    return 0;
  size_t at = 1;
  while (at < b->size && b->at[at] >= '0' && b->at[at] <= '9')
    at++;
  return at + 2 < b->size && b->at[at] == '\r' && b->at[at + 1] == '\n' && b->at[at + 2] == '$';
}

/* Length, api key, api version, correlation, then the client's name as a short text. */
static int is_kafka (const bytes_t *b)
{
  if (b->size < 14 || (uint64_t) big32 (b, 0) + 4 != b->length)
    return 0;
  unsigned key = big32 (b, 4) >> 16, version = big32 (b, 4) & 0xffff;
  unsigned name = big32 (b, 10) & 0xffff; /* the last two of these */
  return key <= 100 && version <= 20 && (name == 0xffff || name + 14u <= b->length);
}

/* Length, ids, then OP_MSG, OP_QUERY or OP_COMPRESSED. */
static int is_mongodb (const bytes_t *b)
{
  if (b->size < 16 || little32 (b, 0) != b->length)
    return 0;
  uint32_t code = little32 (b, 12);
  return code == 2013 || code == 2004 || code == 2012;
}

static int is_memcached (const bytes_t *b)
{
  static const char *const word[] = {"get ", "gets ", "set ", "add ", "version\r\n", "stats", "mg ", "ms "};
  if (b->size >= 24 && b->at[0] == 0x80 && b->at[1] <= 0x24 && b->at[5] == 0)
    return (uint64_t) big32 (b, 8) + 24 <= b->length;
  for (size_t i = 0; i < sizeof word / sizeof *word; i++)
    if (begins (b, word[i]))
      return 1;
  return 0;
}

static int is_mqtt (const bytes_t *b)
{
  return b->size >= 10 && b->at[0] == 0x10 && memmem (b->at, 10, "MQTT", 4) != NULL;
}

/* Type connect, length, two checksums of zero. */
static int is_oracle (const bytes_t *b)
{
  return b->size >= 8 && big32 (b, 0) >> 16 == b->length && b->at[4] == 1 && b->at[2] == 0 && b->at[3] == 0;
}

/* Pre-login, end of message, the length in big endian. */
static int is_sqlserver (const bytes_t *b)
{
  return b->size >= 8 && b->at[0] == 0x12 && b->at[1] == 1 && (big32 (b, 0) & 0xffff) == b->length;
}

/* OPTIONS or STARTUP of protocol 3 to 5. */
static int is_cassandra (const bytes_t *b)
{
  return b->size >= 9 && b->at[0] >= 3 && b->at[0] <= 5 && (b->at[4] == 5 || b->at[4] == 1) &&
         (uint64_t) big32 (b, 5) + 9 == b->length;
}

/* ---- together ------------------------------------------------------------- */
weft_protocol_t probe_guess_client (const void *data, size_t size)
{
  bytes_t b = bytes_of (data, size);
  if (is_tls (&b))
    return WEFT_PROTOCOL_TLS;
  if (begins (&b, "PRI * HTTP/2.0"))
    return WEFT_PROTOCOL_HTTP2;
  if (is_postgresql_start (&b))
    return WEFT_PROTOCOL_POSTGRESQL;
  if (begins (&b, "SSH-"))
    return WEFT_PROTOCOL_SSH;
  if (begins (&b, "AMQP"))
    return WEFT_PROTOCOL_AMQP;
  if (is_redis (&b))
    return WEFT_PROTOCOL_REDIS;
  if (is_mongodb (&b))
    return WEFT_PROTOCOL_MONGODB;
  if (is_memcached (&b))
    return WEFT_PROTOCOL_MEMCACHED;
  if (begins (&b, "CONNECT {"))
    return WEFT_PROTOCOL_NATS;
  if (is_mqtt (&b))
    return WEFT_PROTOCOL_MQTT;
  if (is_sqlserver (&b))
    return WEFT_PROTOCOL_SQLSERVER;
  if (is_oracle (&b))
    return WEFT_PROTOCOL_ORACLE;
  if (is_cassandra (&b))
    return WEFT_PROTOCOL_CASSANDRA;
  return is_kafka (&b) ? WEFT_PROTOCOL_KAFKA : WEFT_PROTOCOL_NONE;
}

weft_protocol_t probe_guess_server (const void *data, size_t size)
{
  bytes_t b = bytes_of (data, size);
  if (is_mysql_greeting (&b))
    return WEFT_PROTOCOL_MYSQL;
  if (begins (&b, "SSH-"))
    return WEFT_PROTOCOL_SSH;
  if (begins (&b, "INFO {"))
    return WEFT_PROTOCOL_NATS;
  if (begins (&b, "220 ") || begins (&b, "220-"))
    return WEFT_PROTOCOL_SMTP;
  return WEFT_PROTOCOL_NONE;
}

weft_protocol_t probe_guess_message (const void *data, size_t size)
{
  bytes_t b = bytes_of (data, size);
  if (is_postgresql (&b))
    return WEFT_PROTOCOL_POSTGRESQL;
  if (is_redis (&b))
    return WEFT_PROTOCOL_REDIS;
  if (is_mongodb (&b))
    return WEFT_PROTOCOL_MONGODB;
  if (is_mysql_command (&b))
    return WEFT_PROTOCOL_MYSQL;
  if (is_tls (&b) && (uint64_t) (big32 (&b, 1) & 0xffff) + 5 <= b.length)
    return WEFT_PROTOCOL_TLS;
  return is_kafka (&b) ? WEFT_PROTOCOL_KAFKA : WEFT_PROTOCOL_NONE;
}

weft_protocol_t probe_guess_port (uint16_t port)
{
  switch (port) {
  case 22:
    return WEFT_PROTOCOL_SSH;
  case 25:
  case 587:
    return WEFT_PROTOCOL_SMTP;
  case 53:
    return WEFT_PROTOCOL_DNS;
  case 80:
  case 8080:
    return WEFT_PROTOCOL_HTTP;
  case 389:
    return WEFT_PROTOCOL_LDAP;
  case 443:
  case 465:
  case 636:
  case 8443:
    return WEFT_PROTOCOL_TLS;
  case 1433:
    return WEFT_PROTOCOL_SQLSERVER;
  case 1521:
    return WEFT_PROTOCOL_ORACLE;
  case 1883:
    return WEFT_PROTOCOL_MQTT;
  case 2181:
    return WEFT_PROTOCOL_ZOOKEEPER;
  case 3306:
    return WEFT_PROTOCOL_MYSQL;
  case 4222:
    return WEFT_PROTOCOL_NATS;
  case 5432:
  case 6432:
    return WEFT_PROTOCOL_POSTGRESQL;
  case 5672:
    return WEFT_PROTOCOL_AMQP;
  case 6379:
    return WEFT_PROTOCOL_REDIS;
  case 9042:
    return WEFT_PROTOCOL_CASSANDRA;
  case 9092:
    return WEFT_PROTOCOL_KAFKA;
  case 11211:
    return WEFT_PROTOCOL_MEMCACHED;
  case 27017:
    return WEFT_PROTOCOL_MONGODB;
  default:
    return WEFT_PROTOCOL_NONE;
  }
}
