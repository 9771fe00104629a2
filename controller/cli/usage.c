/* SPDX-License-Identifier: Apache-2.0 */
#include "usage.h"

#include <string.h>

#define COLUMNS 100

/* Wraps text behind `indent` blanks; the cursor stands there already. */
static void wrapped (FILE *out, const char *text, int indent)
{
  int column = indent;
  for (const char *word = text; *word;) {
    int size = (int) strcspn (word, " ");
    if (column > indent && column + 1 + size > COLUMNS) {
      fprintf (out, "\n%*s", indent, "");
      column = indent;
    } else if (column > indent) {
      fputc (' ', out);
      column++;
    }
    fprintf (out, "%.*s", size, word);
    column += size;
    word += size;
    word += strspn (word, " ");
  }
  fputc ('\n', out);
}

void ctl_usage (FILE *out)
{
  fprintf (out,
           "weft follows tasks across process VMs: which executions belong to one task, who called whom,\n"
           "and where did the time go?\n\n"
           "usage: weft VERB [OPTION…] [ARGUMENT…]\n\n");
  for (uint32_t n = 0; n < ctl_verb_count; n++) {
    fprintf (out, "  %-11s ", ctl_verbs[n].name);
    wrapped (out, ctl_verbs[n].summary, 14);
  }
  fprintf (out, "\n"
                "  weft VERB --help   its options\n"
                "  weft --version     the version\n"
                "  weft --completion  a script for bash\n"
                "  weft --man         a man page\n\n"
                "exit status: 0 done, 1 failed, 2 wrong usage\n");
}

static const char *dashes (const ctl_option_t *option)
{
  return option->name[1] ? "--" : "-";
}

static void option_line (FILE *out, const ctl_option_t *option)
{
  char left[64];
  int size =
      snprintf (left, sizeof left, "%s%s%s%s%s", dashes (option), option->name, option->argument ? " " : "",
                option->argument ? option->argument : "", option->repeats ? "…" : "");
  /* The ellipsis is three bytes and one column. */
  fprintf (out, "  %s%*s", left, 22 - (size - (option->repeats ? 2 : 0)), "");
  wrapped (out, option->help, 24);
}

void ctl_usage_verb (FILE *out, const ctl_verb_t *verb)
{
  fprintf (out, "usage: weft %s [OPTION…]%s%s\n\n", verb->name, *verb->arguments ? " " : "", verb->arguments);
  wrapped (out, verb->summary, 0);
  if (verb->detail) {
    fputc ('\n', out);
    wrapped (out, verb->detail, 0);
  }
  fputc ('\n', out);
  for (uint32_t n = 0; n < verb->option_count; n++)
    option_line (out, &verb->options[n]);
  for (uint32_t n = 0; n < ctl_common_option_count; n++)
    option_line (out, &ctl_common_options[n]);
}

void ctl_usage_completion (FILE *out)
{
  fprintf (out, "# bash completion for weft; made by `weft --completion`\n"
                "_weft ()\n{\n  local word=${COMP_WORDS[COMP_CWORD]} words\n"
                "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n    words=\"");
  for (uint32_t n = 0; n < ctl_verb_count; n++)
    fprintf (out, "%s ", ctl_verbs[n].name);
  fprintf (out, "--help --version --completion --man\"\n  else\n    case ${COMP_WORDS[1]} in\n");
  for (uint32_t n = 0; n < ctl_verb_count; n++) {
    fprintf (out, "      %s) words=\"", ctl_verbs[n].name);
    for (uint32_t o = 0; o < ctl_verbs[n].option_count; o++)
      fprintf (out, "%s%s ", dashes (&ctl_verbs[n].options[o]), ctl_verbs[n].options[o].name);
    for (uint32_t o = 0; o < ctl_common_option_count; o++)
      fprintf (out, "--%s%s", ctl_common_options[o].name, o + 1 < ctl_common_option_count ? " " : "");
    fprintf (out, "\" ;;\n");
  }
  fprintf (out, "    esac\n  fi\n"
                "  mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$word\")\n}\n"
                "complete -o default -F _weft weft\n");
}

/* Text for troff: a dash is a minus, a backslash is itself, no line begins with a control character. */
static void troff (FILE *out, const char *text)
{
  if (*text == '.' || *text == '\'')
    fputs ("\\&", out);
  for (; *text; text++) {
    if (*text == '-')
      fputs ("\\-", out);
    else if (*text == '\\')
      fputs ("\\e", out);
    else if (strncmp (text, "…", strlen ("…")) == 0) {
      fputs ("...", out); /* plain ASCII: not every troff reads UTF-8 */
      text += strlen ("…") - 1;
    } else
      fputc (*text, out);
  }
}

static void troff_option (FILE *out, const ctl_option_t *option)
{
  fprintf (out, ".TP\n.B ");
  troff (out, dashes (option));
  troff (out, option->name);
  if (option->argument) {
    fprintf (out, " \\fI");
    troff (out, option->argument);
    fprintf (out, "\\fR");
  }
  fprintf (out, "\n");
  troff (out, option->help);
  fprintf (out, "%s\n", option->repeats ? " (may be repeated)" : "");
}

void ctl_usage_man (FILE *out)
{
  fprintf (
      out,
      ".\\\" made by `weft --man`\n.TH WEFT 1 \"\" \"weft " WEFT_VERSION "\" \"User Commands\"\n"
      ".SH NAME\nweft \\- follow tasks across process VMs\n.SH SYNOPSIS\n.B weft\n"
      ".I VERB\n[\\fIOPTION\\fR...] [\\fIARGUMENT\\fR...]\n.SH DESCRIPTION\n"
      "weft tells on a live system, without touching the application, which executions in which process VMs "
      "belong to one task, who called whom, and where the time went.\n.SH VERBS\n");
  for (uint32_t n = 0; n < ctl_verb_count; n++) {
    const ctl_verb_t *verb = &ctl_verbs[n];
    fprintf (out, ".SS ");
    troff (out, verb->name);
    fputc (*verb->arguments ? ' ' : '\n', out);
    if (*verb->arguments) {
      troff (out, verb->arguments);
      fputc ('\n', out);
    }
    troff (out, verb->summary);
    fprintf (out, ".\n");
    if (verb->detail) {
      troff (out, verb->detail);
      fputc ('\n', out);
    }
    for (uint32_t o = 0; o < verb->option_count; o++)
      troff_option (out, &verb->options[o]);
  }
  fprintf (out, ".SH OPTIONS OF EVERY VERB\n");
  for (uint32_t n = 0; n < ctl_common_option_count; n++)
    troff_option (out, &ctl_common_options[n]);
  fprintf (out, ".SH EXIT STATUS\n0 done, 1 failed, 2 wrong usage.\n"
                ".SH ENVIRONMENT\n.TP\n.B WEFT_CONTROLLER\naddress of the controller\n"
                ".TP\n.B WEFT_AUTOSTART\nno: never start a controller where none listens\n"
                ".TP\n.B NO_COLOR\nno colours, whatever the terminal\n");
}
