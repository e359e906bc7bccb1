// Fails while a file in a folder contains a `TODO`, and reports the place.
#include "handler.h"
#include <stdlib.h>
#include <string.h>

typedef exports_glovebox_plugin_stage_stage_input_t input_t;
typedef exports_glovebox_plugin_stage_outcome_t outcome_t;
typedef glovebox_plugin_files_error_t error_t;

enum { FILE_BYTES_MAX = 1 << 20 };

// The places that were found, one on each line.
typedef struct {
  char *text;
  size_t bytes;
  unsigned count;
} found_t;

static char *text_of(const handler_string_t *string) {
  char *text = malloc(string->len + 1);
  memcpy(text, string->ptr, string->len);
  text[string->len] = 0;
  return text;
}

static char *joined(const char *first, const char *separator, const char *second) {
  char *text = malloc(strlen(first) + strlen(separator) + strlen(second) + 1);
  strcpy(text, first);
  strcat(text, separator);
  return strcat(text, second);
}

static char *attribute(const input_t *input, const char *name) {
  for (size_t i = 0; i < input->attributes.len; i++) {
    const handler_tuple2_string_string_t *pair = &input->attributes.ptr[i];
    if (pair->f0.len == strlen(name) && memcmp(pair->f0.ptr, name, pair->f0.len) == 0) {
      return text_of(&pair->f1);
    }
  }
  return NULL;
}

static void fail(outcome_t *outcome, const char *code, const char *reason) {
  outcome->status = GLOVEBOX_PLUGIN_TYPES_STATUS_FAIL;
  outcome->failure.is_some = true;
  handler_string_dup(&outcome->failure.val.class_, "deterministic");
  handler_string_dup(&outcome->failure.val.code, code);
  handler_string_dup(&outcome->failure.val.reason, reason);
}

// Reports an error of the host. Its message is not terminated by a NUL.
static void refuse(outcome_t *outcome, const char *code, const char *action, const char *path, error_t *error) {
  char *message = text_of(&error->message), *begin = joined(action, path, "`: ");
  fail(outcome, code, joined(begin, "", message));
}

// `printf` would import the standard streams of WASI.
static char *decimal(unsigned number, char digits[16]) {
  char *at = digits + 15;
  *at = 0;
  do {
    *--at = (char)('0' + number % 10);
    number /= 10;
  } while (number > 0);
  return at;
}

static void add(found_t *found, const char *path, unsigned number) {
  char digits[16];
  char *place = joined(joined(path, ":", decimal(number, digits)), "", " has a TODO\n");
  size_t bytes = strlen(place);
  found->text = realloc(found->text, found->bytes + bytes + 1);
  memcpy(found->text + found->bytes, place, bytes + 1);
  found->bytes += bytes;
  found->count++;
}

static void search_text(const char *path, const handler_list_u8_t *bytes, found_t *found) {
  unsigned number = 1, reported = 0;
  for (size_t i = 0; i < bytes->len; i++) {
    if (bytes->ptr[i] == '\n') {
      number++;
    } else if (bytes->len - i >= 4 && memcmp(bytes->ptr + i, "TODO", 4) == 0 && reported != number) {
      add(found, path, number);
      reported = number;
    }
  }
}

// Collects the places of all `TODO`s in a folder and the folders in it.
static bool search(const char *folder, found_t *found, error_t *error) {
  handler_string_t path;
  handler_string_set(&path, folder);
  glovebox_plugin_files_list_node_t nodes;
  if (!glovebox_plugin_files_list(&path, &nodes, error)) return false;
  for (size_t i = 0; i < nodes.len; i++) {
    char *inner = joined(folder, "/", text_of(&nodes.ptr[i].name));
    if (strcmp(text_of(&nodes.ptr[i].kind), "directory") == 0) {
      if (!search(inner, found, error)) return false;
      continue;
    }
    handler_string_set(&path, inner);
    handler_list_u8_t bytes;
    if (!glovebox_plugin_files_read(&path, 0, FILE_BYTES_MAX, &bytes, error)) return false;
    search_text(inner, &bytes, found);
  }
  return true;
}

static void log_found(const input_t *input, unsigned count) {
  char digits[16];
  handler_tuple2_string_string_t fields[2];
  handler_string_set(&fields[0].f0, "node");
  fields[0].f1 = input->attempt.node_id;
  handler_string_set(&fields[1].f0, "found");
  handler_string_set(&fields[1].f1, decimal(count, digits));
  handler_list_tuple2_string_string_t list = {fields, 2};
  handler_string_t level, message;
  handler_string_set(&level, "info");
  handler_string_set(&message, "searched");
  glovebox_plugin_control_log(&level, &message, &list);
}

// An instance of the component serves one call, and its memory is freed as a whole, so nothing is freed here.
void exports_glovebox_plugin_stage_execute(input_t *input, outcome_t *outcome) {
  memset(outcome, 0, sizeof *outcome);
  // `plugin.toml` declares this attribute with a default, so the host always sets it.
  char *folder = attribute(input, "folder");
  size_t length = strlen(folder);
  if (length > 0 && folder[length - 1] == '/') folder[length - 1] = 0;
  found_t found = {malloc(1), 0, 0};
  found.text[0] = 0;
  error_t error;
  if (!search(folder, &found, &error)) {
    refuse(outcome, "todo/read", "cannot read `", folder, &error);
    return;
  }
  log_found(input, found.count);
  char *report = attribute(input, "output");
  if (report != NULL) {
    handler_string_t path;
    handler_string_set(&path, report);
    handler_list_u8_t data = {(uint8_t *)found.text, found.bytes};
    if (!glovebox_plugin_files_write(&path, &data, &error)) {
      refuse(outcome, "todo/report", "cannot write `", report, &error);
      return;
    }
  }
  if (found.count == 0) {
    outcome->status = GLOVEBOX_PLUGIN_TYPES_STATUS_SUCCESS;
    handler_string_dup(&outcome->notes, "no TODO is left");
  } else {
    *strchr(found.text, '\n') = 0;
    fail(outcome, "todo/found", found.text);
  }
}
