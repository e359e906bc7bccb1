// Asks the model the prompt of the node, and fails if the answer is empty.
#include "agent.h"
#include <stdlib.h>
#include <string.h>

typedef exports_glovebox_plugin_stage_stage_input_t input_t;
typedef exports_glovebox_plugin_stage_outcome_t outcome_t;

static void fail(outcome_t *outcome, const char *code, const agent_string_t *reason) {
  outcome->status = GLOVEBOX_PLUGIN_TYPES_STATUS_FAIL;
  outcome->failure.is_some = true;
  agent_string_dup(&outcome->failure.val.class_, "deterministic");
  agent_string_dup(&outcome->failure.val.code, code);
  outcome->failure.val.reason = *reason;
}

static void fail_with(outcome_t *outcome, const char *code, const char *reason) {
  agent_string_t text;
  agent_string_dup(&text, reason);
  fail(outcome, code, &text);
}

static bool is_empty(const agent_string_t *text) {
  for (size_t i = 0; i < text->len; i++) {
    if (strchr(" \t\r\n", text->ptr[i]) == NULL) return false;
  }
  return true;
}

// Returns the text parts of a message as one text.
static agent_string_t text_of(const glovebox_plugin_chat_message_t *message) {
  agent_string_t text = {malloc(1), 0};
  for (size_t i = 0; i < message->parts.len; i++) {
    const glovebox_plugin_chat_part_t *part = &message->parts.ptr[i];
    if (part->kind.len != 4 || memcmp(part->kind.ptr, "text", 4) != 0) continue;
    text.ptr = realloc(text.ptr, text.len + part->text.len + 1);
    memcpy(text.ptr + text.len, part->text.ptr, part->text.len);
    text.len += part->text.len;
  }
  return text;
}

// An instance of the component serves one call, and its memory is freed as a whole, so nothing is freed here.
void exports_glovebox_plugin_stage_execute(input_t *input, outcome_t *outcome) {
  memset(outcome, 0, sizeof *outcome);
  if (!input->prompt.is_some) {
    fail_with(outcome, "ask/prompt", "the node has no prompt");
    return;
  }
  glovebox_plugin_chat_part_t part = {0};
  agent_string_set(&part.kind, "text");
  part.text = input->prompt.val;
  glovebox_plugin_chat_message_t question = {0};
  agent_string_set(&question.role, "user");
  question.parts.ptr = &part;
  question.parts.len = 1;
  glovebox_plugin_llm_request_t request = {0};
  request.messages.ptr = &question;
  request.messages.len = 1;
  glovebox_plugin_llm_response_t response;
  glovebox_plugin_llm_error_t error;
  if (!glovebox_plugin_llm_complete(&request, &response, &error)) {
    fail(outcome, "ask/model", &error.message);
    return;
  }
  agent_string_t answer = text_of(&response.message);
  if (is_empty(&answer)) {
    fail_with(outcome, "ask/empty", "the model gave no answer");
    return;
  }
  outcome->status = GLOVEBOX_PLUGIN_TYPES_STATUS_SUCCESS;
  outcome->notes = answer;
}
