/* SPDX-License-Identifier: Apache-2.0 */
/* guess: first bytes as real clients and servers send them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "../../../../instance/probe/guess.h"

typedef weft_protocol_t (guess_t) (const void *data, size_t size);

/* A copy of exactly this size: a sanitizer sees every byte too many. */
static weft_protocol_t guess (guess_t *fn, const char *data, size_t size)
{
  char *copy = malloc (size ? size : 1);
  assert_non_null (copy);
  memcpy (copy, data, size);
  weft_protocol_t found = fn (copy, size);
  free (copy);
  return found;
}
#define IS(fn, bytes, protocol)                                                                              \
  assert_int_equal (guess (fn, bytes, sizeof (bytes) - 1), WEFT_PROTOCOL_##protocol)

static void test_clients (void **state)
{
  /* libpq: may we speak TLS; the start of a session; psql's question for GSS */
  IS (probe_guess_client, "\0\0\0\x08\x04\xd2\x16\x2f", POSTGRESQL);
  IS (probe_guess_client, "\0\0\0\x29\0\x03\0\0user\0postgres\0database\0postgres\0\0", POSTGRESQL);
  IS (probe_guess_client, "\0\0\0\x08\x04\xd2\x16\x30", POSTGRESQL);
  IS (probe_guess_client, "*3\r\n$3\r\nSET\r\n$3\r\nkey\r\n$1\r\n0\r\n", REDIS);
  IS (probe_guess_client, "*12\r\n$4\r\nMSET\r\n", REDIS);
  /* OpenSSL 3, TLS 1.3; a record of an old SSL 3 */
  IS (probe_guess_client, "\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03\x6b\x80", TLS);
  IS (probe_guess_client, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\x12\x04", HTTP2);
  IS (probe_guess_client, "SSH-2.0-OpenSSH_9.2p1 Debian-2+deb12u3\r\n", SSH);
  IS (probe_guess_client, "AMQP\0\0\x09\x01", AMQP);
  IS (probe_guess_client, "CONNECT {\"verbose\":false,\"pedantic\":false}\r\n", NATS);
  /* ApiVersions v3 of a Java client, name "adminclient-1" */
  IS (probe_guess_client,
      "\0\0\0\x31\0\x12\0\x03\0\0\0\0\0\x0d"
      "adminclient-1\0\x12"
      "apache-kafka-java\x06"
      "3.7.0\0",
      KAFKA);
  /* OP_MSG {hello: 1, $db: "admin"} */
  IS (probe_guess_client,
      "\x34\0\0\0\x01\0\0\0\0\0\0\0\xdd\x07\0\0\0\0\0\0\0\x1f\0\0\0\x10hello\0\x01\0\0\0\x02$db\0\x06\0\0\0"
      "admin\0\0",
      MONGODB);
  IS (probe_guess_client, "get session:812\r\n", MEMCACHED);
  IS (probe_guess_client, "\x80\x0b\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", MEMCACHED);
  IS (probe_guess_client, "\x10\x10\0\x04MQTT\x04\x02\0\x3c\0\x04weft", MQTT);
  IS (probe_guess_client, "\x12\x01\0\x10\0\0\x01\0\0\0\0\0\0\0\0\0", SQLSERVER);
  IS (probe_guess_client, "\0\x0a\0\0\x01\0\0\0\x01\x3e", ORACLE);
  IS (probe_guess_client, "\x04\0\0\0\x05\0\0\0\0", CASSANDRA);
}

static void test_servers (void **state)
{
  /* MariaDB 10.11 */
  IS (probe_guess_server,
      "\x5d\0\0\0\x0a"
      "5.5.5-10.11.6-MariaDB-0+deb12u1\0\x1f\0\0\0Zg~XCd2p\0\xfe\xf7\x2d\x02\0\xff\x81\x15\0\0\0\0\0\0\x1d\0"
      "\0\0\\Pq>1t8'V2,m\0mysql_native_password\0",
      MYSQL);
  IS (probe_guess_server, "SSH-2.0-OpenSSH_9.2p1\r\n", SSH);
  IS (probe_guess_server, "INFO {\"server_id\":\"NCXN\",\"version\":\"2.10.4\"}\r\n", NATS);
  IS (probe_guess_server, "220 mail.example.org ESMTP Postfix\r\n", SMTP);
  IS (probe_guess_server, "* OK IMAP4rev1\r\n", NONE);
  IS (probe_guess_server, "\0\0\0\0\x0a", NONE);
}

static void test_what_is_none (void **state)
{
  IS (probe_guess_client, "", NONE);
  IS (probe_guess_client, "GET / HTTP/1.1\r\nHost: x\r\n\r\n", NONE);
  IS (probe_guess_client, "CONNECT db:5432 HTTP/1.1\r\n\r\n", NONE);
  IS (probe_guess_client, "\x16\x03", NONE);
  IS (probe_guess_client, "\0\0\0\x08\x04\xd2\x16", NONE);
  IS (probe_guess_client, "*a\r\n$1\r\n", NONE);
  IS (probe_guess_client, "*1\r\n", NONE);
  /* one byte less than the length says: no Kafka */
  IS (probe_guess_client,
      "\0\0\0\x0f\0\x12\0\x03\0\0\0\0\0\x05"
      "weft",
      NONE);
  IS (probe_guess_client, "\x01\x01\x01\x01\n", NONE);
  IS (probe_guess_message,
      "\x17\x03\x03\x00\x05"
      "abc",
      NONE);
}

/* In mid-life: whole messages, whose lengths fit the bytes. */
static void test_messages (void **state)
{
  IS (probe_guess_message, "Q\0\0\0\x0dSELECT 1\0", POSTGRESQL);
  IS (probe_guess_message, "P\0\0\0\x0a\0a\0\0\0\0B\0\0\0\x08\0\0\0\0S\0\0\0\x04", POSTGRESQL);
  IS (probe_guess_message, "Q\0\0\0\x0eSELECT 1\0", NONE);
  IS (probe_guess_message, "X\0\0\0\x04", POSTGRESQL);
  IS (probe_guess_message, "\x09\0\0\0\x03SELECT 1", MYSQL);
  IS (probe_guess_message, "\x0a\0\0\0\x03SELECT 1", NONE);
  IS (probe_guess_message, "*1\r\n$4\r\nPING\r\n", REDIS);
  IS (probe_guess_message, "\x17\x03\x03\0\x05helloworld", TLS);
  IS (probe_guess_message, "{\"cart\":8812,\"items\":[1]}", NONE);
  IS (probe_guess_message, "5\r\nhello\r\n", NONE);
}

static void test_a_long_statement_is_judged_by_its_beginning (void **state)
{
  char data[5000];
  memset (data, 'x', sizeof data);
  data[0] = 'Q'; /* and a length of 4,999: all but the letter */
  data[1] = data[2] = 0;
  data[3] = 0x13;
  data[4] = (char) 0x87;
  assert_int_equal (probe_guess_message (data, sizeof data), WEFT_PROTOCOL_POSTGRESQL);
  assert_int_equal (probe_guess_message (data, sizeof data - 1), WEFT_PROTOCOL_NONE);
}

/* Whatever comes: no byte beyond the end is looked at (the copies are exact), and there is an answer. */
static void test_any_bytes (void **state)
{
  char data[80];
  unsigned seed = 4711;
  for (int i = 0; i < 200000; i++) {
    size_t size = (size_t) rand_r (&seed) % sizeof data;
    for (size_t k = 0; k < size; k++)
      data[k] = "\0\x01\x03\x04\x08\x10\x16*$QPBSXA\r\n0159"[rand_r (&seed) % 22];
    assert_true (guess (probe_guess_client, data, size) < WEFT_PROTOCOL_COUNT);
    assert_true (guess (probe_guess_server, data, size) < WEFT_PROTOCOL_COUNT);
    assert_true (guess (probe_guess_message, data, size) < WEFT_PROTOCOL_COUNT);
  }
}

static void test_ports_and_texts (void **state)
{
  assert_int_equal (probe_guess_port (5432), WEFT_PROTOCOL_POSTGRESQL);
  assert_int_equal (probe_guess_port (3306), WEFT_PROTOCOL_MYSQL);
  assert_int_equal (probe_guess_port (443), WEFT_PROTOCOL_TLS);
  assert_int_equal (probe_guess_port (0), WEFT_PROTOCOL_NONE);
  assert_int_equal (probe_guess_port (40000), WEFT_PROTOCOL_NONE);
  assert_string_equal (weft_protocol_text (WEFT_PROTOCOL_HTTP2), "http/2");
  assert_string_equal (weft_protocol_text (WEFT_PROTOCOL_COUNT), "unknown");
}

int main (void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test (test_clients),
      cmocka_unit_test (test_servers),
      cmocka_unit_test (test_what_is_none),
      cmocka_unit_test (test_messages),
      cmocka_unit_test (test_a_long_statement_is_judged_by_its_beginning),
      cmocka_unit_test (test_any_bytes),
      cmocka_unit_test (test_ports_and_texts),
  };
  return cmocka_run_group_tests (tests, NULL, NULL);
}
