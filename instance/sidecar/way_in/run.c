/* SPDX-License-Identifier: Apache-2.0 */
#include "run.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "../../../common/ids.h"
#include "../../../common/log.h"
#include "../../../common/status.h"
#include "../arrivals.h"
#include "../background.h"
#include "../claim.h"
#include "../paths.h"
#include "../tree.h"

#define LOADER       "ld-linux-x86-64"
#define HEADERS_MAX  64 /* program headers that are looked at */
#define DEFAULT_PATH "/usr/local/bin:/usr/bin:/bin"

static int is_program (const char *path)
{
  struct stat info;
  return stat (path, &info) == 0 && S_ISREG (info.st_mode);
}

int car_run_find (const char *name, const char *search, char *out, size_t size)
{
  int seen = 0;
  if (strchr (name, '/')) {
    if (strlen (name) >= size || !is_program (name))
      return CAR_RUN_NOT_FOUND;
    memcpy (out, name, strlen (name) + 1);
    return access (name, X_OK) == 0 ? 0 : CAR_RUN_CANNOT;
  }
  for (const char *at = search ? search : DEFAULT_PATH; name[0];) {
    int length = (int) strcspn (at, ":");
    int need = snprintf (out, size, "%.*s%s%s", length, at, length ? "/" : "./", name);
    if (need > 0 && (size_t) need < size && is_program (out)) {
      if (access (out, X_OK) == 0)
        return 0;
      seen = 1;
    }
    if (!at[length])
      break;
    at += length + 1;
  }
  return seen ? CAR_RUN_CANNOT : CAR_RUN_NOT_FOUND;
}

/* The dynamic linker that an ELF file asks for; "" when it is static. */
static int read_loader (int fd, const Elf64_Ehdr *head, char *out, size_t size)
{
  out[0] = '\0';
  for (unsigned i = 0; i < head->e_phnum && i < HEADERS_MAX; i++) {
    Elf64_Phdr segment;
    off_t at = (off_t) (head->e_phoff + (uint64_t) i * sizeof segment);
    if (pread (fd, &segment, sizeof segment, at) != (ssize_t) sizeof segment)
      return WEFT_E_MALFORMED;
    if (segment.p_type != PT_INTERP)
      continue;
    size_t length = segment.p_filesz < size ? segment.p_filesz : size - 1;
    if (pread (fd, out, length, (off_t) segment.p_offset) != (ssize_t) length)
      return WEFT_E_MALFORMED;
    out[length] = '\0';
    return 0;
  }
  return 0;
}

static int check_image (int fd, char *why, size_t why_size)
{
  Elf64_Ehdr head;
  char loader[256];
  ssize_t got = pread (fd, &head, sizeof head, 0);
  if (got >= 2 && memcmp (&head, "#!", 2) == 0)
    return 0;
  if (got < EI_NIDENT || memcmp (head.e_ident, ELFMAG, SELFMAG) != 0) {
    snprintf (why, why_size, "is neither a program nor a script with a #! line; run it with its interpreter");
    return CAR_RUN_CANNOT;
  }
  if (head.e_ident[EI_CLASS] != ELFCLASS64) {
    snprintf (why, why_size, "is a 32-bit program; use a 64-bit build of it");
    return CAR_RUN_CANNOT;
  }
  if (got < (ssize_t) sizeof head || head.e_machine != EM_X86_64 || head.e_phentsize != sizeof (Elf64_Phdr) ||
      read_loader (fd, &head, loader, sizeof loader) < 0) {
    snprintf (why, why_size, "is not an x86-64 program; weft knows no other machine yet");
    return CAR_RUN_CANNOT;
  }
  if (loader[0] == '\0') {
    snprintf (why, why_size,
              "is statically linked, a probe cannot be loaded; use a dynamically linked build");
    return CAR_RUN_CANNOT;
  }
  if (!strstr (loader, LOADER)) {
    snprintf (why, why_size, "is linked for another C library (%s); use a build for glibc", loader);
    return CAR_RUN_CANNOT;
  }
  return 0;
}

int car_run_check (const char *path, char *why, size_t why_size)
{
  struct stat info;
  int fd = open (path, O_RDONLY | O_CLOEXEC);
  if (fd < 0 || fstat (fd, &info) < 0) {
    snprintf (why, why_size, "cannot be read (%s); make it readable", strerror (errno));
    if (fd >= 0)
      close (fd);
    return CAR_RUN_CANNOT;
  }
  int code = 0;
  /* The loader ignores LD_PRELOAD for programs that gain rights. */
  int gains = (info.st_mode & S_ISUID && info.st_uid != geteuid ()) ||
              (info.st_mode & S_ISGID && info.st_gid != getegid ()) ||
              fgetxattr (fd, "security.capability", NULL, 0) > 0;
  if (gains) {
    snprintf (why, why_size, "is set-user-id or has file capabilities; start it as the user it becomes");
    code = CAR_RUN_CANNOT;
  } else
    code = check_image (fd, why, why_size);
  close (fd);
  return code;
}

/* The sidecar's process, from here to its end. */
static void work (const char *service, const char *controller, const weft_keys_t *keys, pid_t pid, int pidfd,
                  const shm_tree_t *tree)
{
  shm_reader_t *reader = NULL;
  uint8_t instance[WEFT_UUID_SIZE];
  char why[256] = "";
  int status = car_claim_await (pid, pidfd, NULL, CAR_SESSION_PROBE_MS, &reader);
  if (status < 0) {
    if (status != WEFT_E_GONE)
      weft_log_error ("no probe came up in %d (%s); it runs on without weft", (int) pid,
                      weft_status_text (status));
    return;
  }
  if (car_claim_take (reader, NULL, instance) < 0) { /* `weft attach` was quicker and works for it */
    shm_reader_destroy (&reader);
    return;
  }
  car_session_options_t session = {
      .pid = pid, .pidfd = pidfd, .service = service, .controller = controller, .keys = keys, .launched = 1};
  if (car_tree_run (&session, tree, &reader, instance, why, sizeof why) < 0)
    weft_log_error ("cannot report on %d: %s", (int) pid, why);
}

static int set_environment (const char *library, const shm_tree_t *tree)
{
  char number[16], digits[2 * sizeof *tree + 1] = "";
  const char *others = getenv ("LD_PRELOAD");
  size_t size = strlen (library) + (others ? strlen (others) : 0) + 2;
  char *preload = malloc (size);
  if (!preload)
    return WEFT_E_NOMEM;
  snprintf (preload, size, "%s%s%s", library, others && others[0] ? ":" : "", others ? others : "");
  snprintf (number, sizeof number, "%d", (int) getpid ());
  weft_hex_put (digits, (const uint8_t *) tree, sizeof *tree);
  int failed = setenv ("LD_PRELOAD", preload, 1) != 0 || setenv ("WEFT_PROBE_PID", number, 1) != 0 ||
               setenv ("WEFT_PROBE_TREE", digits, 1) != 0;
  free (preload);
  return failed ? WEFT_E_NOMEM : 0;
}

int car_run (const char *service, const char *controller, const weft_keys_t *keys, char **command)
{
  char path[CAR_PATH_MAX], library[CAR_PATH_MAX], why[CAR_PATH_MAX * 3] = "";
  int code = car_run_find (command[0], getenv ("PATH"), path, sizeof path);
  if (code) {
    weft_log_error (code == CAR_RUN_NOT_FOUND
                        ? "cannot run %s: command not found; check the name and PATH"
                        : "cannot run %s: it is not executable; chmod +x it or name its interpreter",
                    command[0]);
    return code;
  }
  code = car_run_check (path, why, sizeof why);
  if (code) {
    weft_log_error ("cannot run %s: it %s", command[0], why);
    return code;
  }
  if (car_paths_probe (library, sizeof library, why, sizeof why) < 0) {
    weft_log_error ("cannot run %s: %s", command[0], why);
    return CAR_RUN_CANNOT;
  }
  shm_tree_t tree;
  pid_t pid = getpid ();
  int pidfd = (int) syscall (SYS_pidfd_open, pid, 0);
  int here =
      pidfd < 0 || car_arrivals_draw (&tree) < 0 ? WEFT_E_UNSUPPORTED : car_background (pid, &pidfd, 1);
  if (here == 0) {
    work (service, controller, keys, pid, pidfd, &tree);
    _exit (0);
  }
  if (here < 0 || set_environment (library, &tree) < 0) {
    weft_log_error ("cannot start a sidecar for %s (%s); free some memory, or run it without weft",
                    command[0], weft_status_text (here < 0 ? here : WEFT_E_NOMEM));
    return CAR_RUN_CANNOT;
  }
  execv (path, command);
  weft_log_error ("cannot run %s: %s; check the file and its interpreter", command[0], strerror (errno));
  return errno == ENOENT ? CAR_RUN_NOT_FOUND : CAR_RUN_CANNOT;
}
