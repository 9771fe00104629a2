/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* cmocka.h must follow these */
#include <cmocka.h>

#include "../../../../instance/sidecar/service_name.h"

/* Words as in /proc/PID/cmdline; `words` holds them with their terminators. */
#define NAME(vm, words, wanted)                                                                              \
  do {                                                                                                       \
    char out[WEFT_SERVICE_MAX];                                                                              \
    car_service_from_words (vm, words, sizeof words, out);                                                   \
    assert_string_equal (out, wanted);                                                                       \
  } while (0)

static void java_command_lines (void **state)
{
  NAME ("jvm",
        "java\0-Xmx1g\0-cp\0a.jar:b.jar\0com.shop.Orders\0--port\0"
        "8080",
        "Orders");
  NAME ("jvm", "java\0-jar\0/srv/orders-1.2.jar", "orders-1.2");
  NAME ("jvm", "java\0--add-opens\0java.base/java.lang=ALL-UNNAMED\0Main", "Main");
  NAME ("jvm", "java\0-m\0shop/com.shop.Orders", "Orders");
  NAME ("jvm",
        "java\0Orders.java\0"
        "1",
        "Orders");
  NAME ("jvm", "java\0@args\0-version", "");
}

static void script_command_lines (void **state)
{
  NAME ("cpython", "python3\0-u\0/srv/front.py\0--port", "front");
  NAME ("cpython", "python3\0-X\0dev\0-W\0ignore\0shop.py", "shop");
  NAME ("cpython", "python3\0-m\0flask\0run", "flask");
  NAME ("cpython", "python3\0-c\0print(1)", "");
  NAME ("cpython", "/usr/bin/python3\0/usr/bin/gunicorn\0app:app", "gunicorn");
  NAME ("node", "node\0-r\0dotenv/config\0server.mjs", "server");
  NAME ("", "nginx: master process", "");
  NAME ("cpython", "python3\0my shop.py", "my_shop"); /* a topic has no blanks */
}

static void units (void **state)
{
  char out[WEFT_SERVICE_MAX];
  car_service_from_cgroup ("0::/system.slice/orders.service\n", out);
  assert_string_equal (out, "orders");
  car_service_from_cgroup ("4:memory:/x\n0::/user.slice/user-1000.slice/user@1000.service\n", out);
  assert_string_equal (out, "");
  car_service_from_cgroup ("0::/\n", out);
  assert_string_equal (out, "");
  car_service_from_cgroup ("0::/.service\n", out);
  assert_string_equal (out, "");
}

int main (void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test (java_command_lines),
      cmocka_unit_test (script_command_lines),
      cmocka_unit_test (units),
  };
  return cmocka_run_group_tests (tests, NULL, NULL);
}
