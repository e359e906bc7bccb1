// Refuses a deployment before its review, and commands of agents that push to a repository.
#include "policy.h"
#include "json.h"

// A function of the policy that returns false refuses, with the reason in its last argument. An instance of the component serves one
// call, and its memory is freed as a whole, so nothing is freed here.
bool exports_glovebox_plugin_policy_rules_judge_call(policy_string_t *text, policy_string_t *reason) {
  json_t call = json_of(text->ptr, text->len);
  // The arguments are null if the stage can read hold-outs.
  json_t command = json_field(json_field(call, "arguments"), "command");
  if (!json_is(json_field(call, "tool"), "shell") || strstr(json_text(command), "git push") == NULL) return true;
  policy_string_dup(reason, "an agent must not push to a repository");
  return false;
}

bool exports_glovebox_plugin_policy_rules_judge_edge(policy_string_t *text, policy_string_t *reason) {
  json_t edge = json_of(text->ptr, text->len);
  if (!json_is(json_field(edge, "to"), "deploy") || json_has(json_field(edge, "succeeded"), "review")) return true;
  policy_string_dup(reason, "`deploy` needs a successful `review` before it");
  return false;
}
