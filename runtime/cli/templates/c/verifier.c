// Runs the command in the attribute `program`, and fails if it ends with another code than 0.
#include "verifier.h"
#include <stdlib.h>
#include <string.h>

typedef exports_glovebox_plugin_stage_stage_input_t input_t;
typedef exports_glovebox_plugin_stage_outcome_t outcome_t;

static void fail(outcome_t *outcome, const char *code, const verifier_string_t *reason) {
  outcome->status = GLOVEBOX_PLUGIN_TYPES_STATUS_FAIL;
  outcome->failure.is_some = true;
  verifier_string_dup(&outcome->failure.val.class_, "deterministic");
  verifier_string_dup(&outcome->failure.val.code, code);
  outcome->failure.val.reason = *reason;
}

static void fail_with(outcome_t *outcome, const char *code, const char *reason) {
  verifier_string_t text;
  verifier_string_dup(&text, reason);
  fail(outcome, code, &text);
}

static verifier_string_t attribute(const input_t *input, const char *name) {
  for (size_t i = 0; i < input->attributes.len; i++) {
    const verifier_tuple2_string_string_t *pair = &input->attributes.ptr[i];
    if (pair->f0.len == strlen(name) && memcmp(pair->f0.ptr, name, pair->f0.len) == 0) return pair->f1;
  }
  return (verifier_string_t){0};
}

// Splits a text at spaces. The words share its memory.
static verifier_list_string_t words(const verifier_string_t *text) {
  verifier_list_string_t list = {malloc((text->len + 1) * sizeof(verifier_string_t)), 0};
  for (size_t at = 0; at < text->len;) {
    size_t begin = at;
    while (at < text->len && text->ptr[at] != ' ') at++;
    if (at > begin) list.ptr[list.len++] = (verifier_string_t){text->ptr + begin, at - begin};
    at++;
  }
  return list;
}

// An instance of the component serves one call, and its memory is freed as a whole, so nothing is freed here.
void exports_glovebox_plugin_stage_execute(input_t *input, outcome_t *outcome) {
  memset(outcome, 0, sizeof *outcome);
  verifier_string_t program = attribute(input, "program");
  glovebox_plugin_exec_command_t command = {0};
  command.argv = words(&program);
  if (command.argv.len == 0) {
    fail_with(outcome, "run/program", "`program` is not a command without a shell");
    return;
  }
  glovebox_plugin_exec_exit_t exit;
  glovebox_plugin_exec_error_t error;
  if (!glovebox_plugin_exec_run(&command, &exit, &error)) {
    fail(outcome, "run/command", &error.message);
    return;
  }
  if (!exit.code.is_some || exit.code.val != 0) {
    fail_with(outcome, "run/exit", "the program failed");
    return;
  }
  verifier_tuple2_string_string_t *claim = malloc(sizeof *claim);
  verifier_string_dup(&claim->f0, "command-passed");
  claim->f1 = exit.receipt;
  outcome->claims.ptr = claim;
  outcome->claims.len = 1;
  outcome->status = GLOVEBOX_PLUGIN_TYPES_STATUS_SUCCESS;
  verifier_string_dup(&outcome->notes, "the program passed");
}
