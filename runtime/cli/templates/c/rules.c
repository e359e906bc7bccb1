// Reports every agent that has no `timeout`.
#include "rules.h"
#include "json.h"

typedef exports_glovebox_plugin_graph_rules_finding_t finding_t;

// Sets the changed graph as JSON. None leaves the graph unchanged. A function that returns false fails the check, with the reason in its
// last argument.
bool exports_glovebox_plugin_graph_rules_transform(rules_string_t *text, exports_glovebox_plugin_graph_rules_option_json_t *changed,
                                                   rules_string_t *reason) {
  (void)text, (void)reason;
  changed->is_some = false;
  return true;
}

static void report(const char *id, finding_t *finding) {
  memset(finding, 0, sizeof *finding);
  char *message = malloc(strlen(id) + sizeof "`` has no timeout");
  strcat(strcat(strcpy(message, "`"), id), "` has no timeout");
  rules_string_set(&finding->message, message);
  rules_string_dup(&finding->rule, "timeout");
  rules_string_dup(&finding->severity, "error");
  finding->node.is_some = finding->help.is_some = true;
  rules_string_dup(&finding->node.val, id);
  rules_string_dup(&finding->help.val, "add `timeout=\"15m\"`");
}

// An instance of the component serves one call, and its memory is freed as a whole, so nothing is freed here.
void exports_glovebox_plugin_graph_rules_lint(rules_string_t *text, exports_glovebox_plugin_graph_rules_list_finding_t *found) {
  json_t nodes = json_open(json_field(json_of(text->ptr, text->len), "nodes"), '[');
  *found = (exports_glovebox_plugin_graph_rules_list_finding_t){0};
  for (;;) {
    json_t node = json_take(&nodes);
    if (json_is_none(node)) return;
    if (!json_is(json_field(node, "handler"), "codergen") || !json_is_none(json_field(node, "timeout"))) continue;
    found->ptr = realloc(found->ptr, (found->len + 1) * sizeof(finding_t));
    report(json_text(json_field(node, "id")), &found->ptr[found->len++]);
  }
}
