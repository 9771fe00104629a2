/* SPDX-License-Identifier: Apache-2.0 */
/* weft-instance: the sidecar's program. `weft` executes it; its command line
 * is an internal one. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../common/keys.h"
#include "../../common/log.h"
#include "../../common/status.h"
#include "../../common/wire.h"
#include "background.h"
#include "doctor.h"
#include "identify.h"
#include "way_in/attach.h"
#include "way_in/run.h"

#define EXIT_USAGE 2

static const char usage[] =
    "usage: weft-instance attach [--service NAME] [--controller ADDR] [--keys DIR] [--json] [--any] "
    "[--report-fd N] "
    "PID...\n"
    "       weft-instance run [--service NAME] [--controller ADDR] [--keys DIR] [--] COMMAND...\n"
    "       weft-instance doctor [--json] [--any] [PID...]\n"
    "       weft-instance identify [--service NAME] [PID...]\n"
    "\n"
    "The sidecar of weft, executed by `weft attach`, `weft run` and `weft profile`.\n"
    "\n"
    "  --service NAME     service name of the process (else found out)\n"
    "  --controller ADDR  base address of the controller (else WEFT_CONTROLLER, else\n"
    "                     the user's runtime directory)\n"
    "  --keys DIR         keys for a controller on tcp (else WEFT_KEYS): its public key, and\n"
    "                     that of instances\n"
    "  --plain-tcp        without keys connect also beyond this host\n"
    "  --json             print joined processes as JSON, one object a line\n"
    "  --any              join also a process that is no known VM\n"
    "  --report-fd N      print them to descriptor N instead of standard output\n"
    "  --verbose          say more on standard error\n"
    "  --help, --version\n"
    "\n"
    "WEFT_LOG=/FILE receives what the sidecars in the background have to say;\n"
    "WEFT_PROBE names another probe library.\n";

typedef struct {
  const char *service, *controller, *keys_dir;
  int json, any, report_fd;
  weft_keys_t keys;
} arguments_t;

static int parse_number (const char *text, long max, long *ret_value)
{
  char *end;
  errno = 0;
  long value = strtol (text, &end, 10);
  if (errno || end == text || *end || value < 0 || value > max)
    return WEFT_E_MALFORMED;
  *ret_value = value;
  return 0;
}

/* -1: go on; else the exit code. optind stands at the first operand. */
static int parse (int argc, char **argv, arguments_t *arguments)
{
  static const struct option options[] = {{"service", required_argument, NULL, 's'},
                                          {"controller", required_argument, NULL, 'c'},
                                          {"keys", required_argument, NULL, 'k'},
                                          {"plain-tcp", no_argument, NULL, 'p'},
                                          {"json", no_argument, NULL, 'j'},
                                          {"any", no_argument, NULL, 'a'},
                                          {"report-fd", required_argument, NULL, 'f'},
                                          {"verbose", no_argument, NULL, 'v'},
                                          {"help", no_argument, NULL, 'h'},
                                          {"version", no_argument, NULL, 'V'},
                                          {NULL, 0, NULL, 0}};
  int option;
  long number;
  while ((option = getopt_long (argc, argv, "+", options, NULL)) != -1)
    switch (option) {
    case 's':
      arguments->service = optarg;
      break;
    case 'c':
      arguments->controller = optarg;
      break;
    case 'k':
      arguments->keys_dir = optarg;
      break;
    case 'p':
      arguments->keys.plain_tcp = 1;
      break;
    case 'a':
      arguments->any = 1;
      break;
    case 'j':
      arguments->json = 1;
      break;
    case 'f':
      if (parse_number (optarg, 1 << 20, &number) < 0) {
        weft_log_error ("--report-fd %s is no descriptor number; give one such as 3", optarg);
        return EXIT_USAGE;
      }
      arguments->report_fd = (int) number;
      break;
    case 'v':
      weft_log_verbose (1);
      break;
    case 'h':
      fputs (usage, stdout);
      return EXIT_SUCCESS;
    case 'V':
      puts ("weft-instance " WEFT_VERSION);
      return EXIT_SUCCESS;
    default:
      fputs (usage, stderr);
      return EXIT_USAGE;
    }
  return -1;
}

static int parse_pids (int count, char **words, pid_t *ret_pids)
{
  if (count > CAR_ATTACH_PIDS_MAX) {
    weft_log_error ("%d pids are more than %d at once; give fewer", count, CAR_ATTACH_PIDS_MAX);
    return WEFT_E_RANGE;
  }
  for (int i = 0; i < count; i++) {
    long pid;
    if (parse_number (words[i], 1 << 30, &pid) < 0 || pid == 0) {
      weft_log_error ("'%s' is no pid; give numbers, `weft profile` without a pid lists them", words[i]);
      return WEFT_E_MALFORMED;
    }
    ret_pids[i] = (pid_t) pid;
  }
  return 0;
}

static int attach_verb (const arguments_t *arguments, int count, char **words)
{
  pid_t pids[CAR_ATTACH_PIDS_MAX];
  if (count < 1) {
    weft_log_error ("attach needs a pid; `weft profile` without a pid lists what can be joined");
    return EXIT_USAGE;
  }
  if (parse_pids (count, words, pids) < 0)
    return EXIT_USAGE;
  FILE *out = arguments->report_fd >= 0 ? fdopen (arguments->report_fd, "w") : stdout;
  if (!out) {
    weft_log_error ("--report-fd %d is not open; pass an open descriptor", arguments->report_fd);
    return EXIT_USAGE;
  }
  car_attach_options_t options = {.service = arguments->service,
                                  .controller = arguments->controller,
                                  .keys = &arguments->keys,
                                  .json = arguments->json,
                                  .any = arguments->any,
                                  .out = out};
  return car_attach (&options, pids, (unsigned) count) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int identify_verb (const arguments_t *arguments, int count, char **words)
{
  int code = EXIT_SUCCESS;
  if (count == 0)
    car_identify_all (stdout);
  for (int i = 0; i < count; i++) {
    long pid;
    if (parse_number (words[i], 1 << 30, &pid) < 0) {
      weft_log_error ("'%s' is no pid; give numbers", words[i]);
      return EXIT_USAGE;
    }
    if (car_identify (stdout, (pid_t) pid, arguments->service) < 0) {
      weft_log_error ("no process has the pid %s; `weft profile` without a pid lists what can be joined",
                      words[i]);
      code = EXIT_FAILURE;
    }
  }
  return code;
}

/* Nothing to be told is there on standard error but what is no process. */
static int doctor_verb (const arguments_t *arguments, int count, char **words)
{
  pid_t pids[CAR_ATTACH_PIDS_MAX];
  car_doctor_t options = {.out = stdout, .json = arguments->json, .any = arguments->any};
  int status = count ? 0 : car_doctor_all (&options);
  if (parse_pids (count, words, pids) < 0)
    return EXIT_USAGE;
  for (int i = 0; i < count; i++) {
    int one = car_doctor (&options, pids[i]);
    if (one == WEFT_E_NOT_FOUND)
      weft_log_error ("no process has the pid %d; `weft profile` without a pid lists what can be joined",
                      (int) pids[i]);
    status = one < 0 ? one : status;
    if (one != WEFT_E_NOT_FOUND && !options.json && i + 1 < count)
      fputc ('\n', stdout);
  }
  return status == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* The words of the command line are overwritten in the background: what a
 * sidecar goes on using is copied. */
static int settle_arguments (arguments_t *arguments)
{
  static char address[WEFT_ENDPOINT_MAX], service[WEFT_SERVICE_MAX];
  char endpoint[WEFT_ENDPOINT_MAX], why[256] = "";
  if (arguments->service) {
    snprintf (service, sizeof service, "%s", arguments->service);
    arguments->service = service;
  }
  if (!arguments->controller) {
    if (weft_endpoint_default (address) < 0) {
      weft_log_error ("no usable controller address; set WEFT_CONTROLLER or give --controller");
      return WEFT_E_NOT_FOUND;
    }
    arguments->controller = address;
  }
  int status = weft_endpoint (arguments->controller, WEFT_ENDPOINT_REPORTS, endpoint, why, sizeof why);
  if (status < 0) {
    weft_log_error ("bad controller address %s: %s", arguments->controller, why);
    return status;
  }
  if (arguments->controller != address)
    snprintf (address, sizeof address, "%s", arguments->controller);
  arguments->controller = address;
  return 0;
}

/* While somebody is there to be told. They are read before the command of `run` replaces us, and are gone
 * with this image then. */
static int settle_keys (arguments_t *arguments)
{
  char dir[WEFT_KEYS_DIR_MAX], why[WEFT_KEYS_DIR_MAX + 300] = "";
  const char *ipc = weft_endpoint_directory (arguments->controller);
  if (ipc)
    mkdir (ipc, 0700); /* ours before somebody else's (keys.h, K3) */
  int status = weft_keys_directory (arguments->keys_dir, dir);
  if (status == 0)
    status = weft_keys_for (arguments->controller, dir, "instance", &arguments->keys, why, sizeof why);
  if (status < 0)
    weft_log_error ("cannot report to %s: %s", arguments->controller, *why ? why : weft_status_text (status));
  return status;
}

int main (int argc, char **argv)
{
  arguments_t arguments = {.report_fd = -1};
  weft_log_name ("weft");
  car_background_words (argc, argv);
  const char *verb = argc > 1 && argv[1][0] != '-' ? argv[1] : NULL;
  int skip = verb ? 1 : 0;
  int code = parse (argc - skip, argv + skip, &arguments);
  if (code >= 0)
    return code;
  char **words = argv + skip + optind;
  int count = argc - skip - optind;
  if (verb && strcmp (verb, "identify") == 0)
    return identify_verb (&arguments, count, words);
  if (verb && strcmp (verb, "doctor") == 0)
    return doctor_verb (&arguments, count, words);
  if (!verb || (strcmp (verb, "attach") != 0 && strcmp (verb, "run") != 0)) {
    fputs (usage, stderr);
    return EXIT_USAGE;
  }
  if (settle_arguments (&arguments) < 0 || settle_keys (&arguments) < 0)
    return EXIT_USAGE;
  if (strcmp (verb, "attach") == 0)
    return attach_verb (&arguments, count, words);
  if (count < 1) {
    weft_log_error ("run needs a command; e.g. `weft run -- python3 app.py`");
    return EXIT_USAGE;
  }
  return car_run (arguments.service, arguments.controller, &arguments.keys, words);
}
