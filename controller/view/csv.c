/* SPDX-License-Identifier: Apache-2.0 */
#include "csv.h"

#include <string.h>

#include "../../common/ids.h"
#include "../../common/status.h"
#include "../task/utf8.h"

static int done (FILE *out)
{
  return ferror (out) ? WEFT_E_IO : 0;
}

void ctl_csv_text (FILE *out, const char *value, char end)
{
  fputc ('"', out);
  if (*value && strchr ("=+-@\t\r", *value))
    fputc ('\'', out);
  while (*value) {
    size_t size = ctl_utf8_sequence (value);
    unsigned char first = (unsigned char) value[0], second = (unsigned char) value[1];
    if (first == '"')
      fputc ('"', out);
    if (size == 0)
      fputc ('?', out);
    else if (first < 0x20 || first == 0x7f || (first == 0xc2 && second < 0xa0)) /* U+0080 to U+009F too */
      fputc (' ', out);
    else
      fwrite (value, 1, size, out);
    value += size ? size : 1;
  }
  fputc ('"', out);
  fputc (end, out);
}

static void number (FILE *out, uint64_t value, char end)
{
  fprintf (out, "%llu%c", (unsigned long long) value, end);
}

static void hex (FILE *out, const uint8_t task[WEFT_TASK_ID_SIZE])
{
  char digits[2 * WEFT_TASK_ID_SIZE];
  weft_hex_put (digits, task, WEFT_TASK_ID_SIZE);
  fprintf (out, "%.*s,", (int) sizeof digits, digits);
}

static void uuid (FILE *out, const uint8_t bytes[WEFT_UUID_SIZE])
{
  char digits[37];
  weft_uuid_put (digits, bytes);
  fprintf (out, "%s,", digits);
}

int ctl_csv_tasks (FILE *out, const ctl_analysis_t *analysis)
{
  fputs ("name,service,executions,complete,errors,p50_ns,p90_ns,p99_ns,max_ns,slowest,total_ns\n", out);
  for (uint32_t i = 0; i < analysis->name_count; i++) {
    const ctl_analysis_name_t *name = &analysis->names[i];
    char slowest[2 * WEFT_TASK_ID_SIZE];
    ctl_csv_text (out, name->name, ',');
    ctl_csv_text (out, name->service, ',');
    number (out, name->executions, ',');
    number (out, name->complete, ',');
    number (out, name->errors, ',');
    number (out, name->p50_ns, ',');
    number (out, name->p90_ns, ',');
    number (out, name->p99_ns, ',');
    number (out, name->max_ns, ',');
    weft_hex_put (slowest, name->slowest, WEFT_TASK_ID_SIZE);
    fprintf (out, "%.*s,", (int) sizeof slowest, slowest);
    number (out, name->total_ns, '\n');
  }
  return done (out);
}

int ctl_csv_each_head (FILE *out)
{
  fputs ("task,name,service,kind,complete,start_ns,duration_ns,subtasks,status,error\n", out);
  return done (out);
}

int ctl_csv_each (FILE *out, const ctl_execution_t *execution)
{
  const ctl_subtask_t *top = execution->count ? &execution->subtasks[0] : NULL;
  hex (out, execution->task);
  ctl_csv_text (out, execution->name, ',');
  ctl_csv_text (out, top ? top->service : "", ',');
  fputs (execution->kind == CTL_KIND_ORPHAN ? "orphan," : "task,", out);
  number (out, execution->complete, ',');
  number (out, execution->start_ns, ',');
  number (out, execution->duration_ns, ',');
  number (out, execution->count, ',');
  number (out, top ? top->status : 0, ',');
  ctl_csv_text (out, top ? ctl_error_text (top->error) : "", '\n');
  return done (out);
}

static void id (FILE *out, uint64_t value)
{
  char digits[16];
  weft_hex_put_u64 (digits, value);
  fprintf (out, "%.*s,", value ? (int) sizeof digits : 0, digits);
}

int ctl_csv_execution (FILE *out, const ctl_execution_t *execution)
{
  fputs (
      "id,parent,request,instance,service,vm,pid,name,status,error,start_ns,duration_ns,self_ns,cpu_ns,hop,"
      "calls,bytes_out,bytes_in\n",
      out);
  for (uint32_t i = 0; i < execution->count; i++) {
    const ctl_subtask_t *subtask = &execution->subtasks[i];
    id (out, subtask->id);
    id (out, subtask->parent == CTL_NO_PARENT ? 0 : execution->subtasks[subtask->parent].id);
    id (out, subtask->request);
    uuid (out, subtask->instance);
    ctl_csv_text (out, subtask->service, ',');
    ctl_csv_text (out, subtask->vm, ',');
    number (out, subtask->pid, ',');
    ctl_csv_text (out, subtask->name, ',');
    number (out, subtask->status, ',');
    ctl_csv_text (out, ctl_error_text (subtask->error), ',');
    number (out, subtask->start_ns, ',');
    number (out, subtask->end_ns - subtask->start_ns, ',');
    number (out, subtask->self_ns, ',');
    if (subtask->cpu_ns == WEFT_NS_NONE)
      fputc (',', out);
    else
      number (out, subtask->cpu_ns, ',');
    fprintf (out, "%s,", ctl_hop_text (subtask->hop));
    if (subtask->hop == CTL_HOP_OPAQUE) {
      number (out, subtask->calls, ',');
      number (out, subtask->bytes_out, ',');
      number (out, subtask->bytes_in, '\n');
    } else {
      fputs (",,\n", out);
    }
  }
  return done (out);
}

int ctl_csv_instances (FILE *out, const ctl_instance_t *const *instances, uint32_t count)
{
  fputs (
      "instance,vm,version,pid,service,host,listens,presence,written,stored,lost,bytes_total,bytes_spoken\n",
      out);
  for (uint32_t i = 0; i < count; i++) {
    static const char *const presence[] = {"present", "silent", "left"};
    const ctl_instance_t *instance = instances[i];
    uuid (out, instance->uuid);
    ctl_csv_text (out, instance->vm, ',');
    ctl_csv_text (out, instance->version, ',');
    number (out, (uint64_t) instance->pid, ',');
    ctl_csv_text (out, instance->service, ',');
    ctl_csv_text (out, instance->host, ',');
    ctl_csv_text (out, instance->listens, ',');
    fprintf (out, "%s,",
             instance->replayed ? "replayed"
                                : presence[instance->presence < CTL_INSTANCE_COUNT ? instance->presence : 1]);
    number (out, instance->written, ',');
    number (out, instance->stored, ',');
    number (out, ctl_losses_sum (instance->losses), ',');
    number (out, instance->bytes_total, ',');
    number (out, instance->bytes_spoken, '\n');
  }
  return done (out);
}
