// Offers agents a tool that finds a text in the files of a folder.
#include "tool_provider.h"
#include "json.h"

typedef tool_provider_string_t string_t;
typedef glovebox_plugin_files_error_t error_t;

// Maximum length of a file that is searched, in bytes, and maximum number of places in an answer.
enum { FILE_BYTES_MAX = 1 << 20, FOUND_MAX = 100 };

static const char PARAMETERS[] =
    "{\"type\":\"object\",\"properties\":{"
    "\"text\":{\"type\":\"string\",\"minLength\":1,\"description\":\"The text to find.\"},"
    "\"folder\":{\"type\":\"string\",\"description\":\"The folder to search, such as `src`.\"}},"
    "\"required\":[\"text\",\"folder\"],\"additionalProperties\":false}";

// The places that were found, one on each line.
typedef struct {
  char *text;
  size_t bytes;
  unsigned count;
} found_t;

static void append(found_t *found, const char *text, size_t bytes) {
  found->text = realloc(found->text, found->bytes + bytes + 1);
  memcpy(found->text + found->bytes, text, bytes);
  found->bytes += bytes;
  found->text[found->bytes] = 0;
}

static void append_text(found_t *found, const char *text) { append(found, text, strlen(text)); }

// `printf` would import the standard streams of WASI.
static void append_number(found_t *found, unsigned number) {
  if (number >= 10) append_number(found, number / 10);
  char digit = (char)('0' + number % 10);
  append(found, &digit, 1);
}

// Appends a line without the blanks at its ends. The host needs UTF-8, so each byte that is not ASCII becomes a `?`.
static void append_line(found_t *found, const char *line, size_t bytes) {
  while (bytes > 0 && (line[0] == ' ' || line[0] == '\t')) line++, bytes--;
  while (bytes > 0 && (line[bytes - 1] == ' ' || line[bytes - 1] == '\r')) bytes--;
  for (size_t i = 0; i < bytes; i++) append(found, (unsigned char)line[i] < 0x80 ? line + i : "?", 1);
}

static bool has(const char *line, size_t bytes, const char *text, size_t length) {
  for (size_t i = 0; i + length <= bytes; i++) {
    if (memcmp(line + i, text, length) == 0) return true;
  }
  return false;
}

static void search_file(const char *path, const char *at, size_t bytes, const char *text, found_t *found) {
  const char *end = at + bytes;
  for (unsigned number = 1; at < end && found->count < FOUND_MAX; number++) {
    const char *stop = memchr(at, '\n', (size_t)(end - at));
    size_t length = (size_t)((stop == NULL ? end : stop) - at);
    if (has(at, length, text, strlen(text))) {
      if (found->count++ > 0) append_text(found, "\n");
      append_text(found, path);
      append_text(found, ":");
      append_number(found, number);
      append_text(found, ": ");
      append_line(found, at, length);
    }
    at = stop == NULL ? end : stop + 1;
  }
}

static char *inner_path(const char *folder, const string_t *name) {
  found_t path = {0};
  append_text(&path, folder);
  append_text(&path, "/");
  append(&path, (const char *)name->ptr, name->len);
  return path.text;
}

// Searches a folder and the folders in it. A file that is too large or may not be read is left out.
static bool search(const char *folder, const char *text, found_t *found, error_t *error) {
  string_t path;
  tool_provider_string_set(&path, folder);
  glovebox_plugin_files_list_node_t nodes;
  if (!glovebox_plugin_files_list(&path, &nodes, error)) return false;
  for (size_t i = 0; i < nodes.len && found->count < FOUND_MAX; i++) {
    char *inner = inner_path(folder, &nodes.ptr[i].name);
    if (nodes.ptr[i].kind.len == strlen("directory")) {
      if (!search(inner, text, found, error)) return false;
      continue;
    }
    tool_provider_list_u8_t bytes;
    error_t unread;
    tool_provider_string_set(&path, inner);
    if (glovebox_plugin_files_read(&path, 0, FILE_BYTES_MAX, &bytes, &unread)) {
      search_file(inner, (const char *)bytes.ptr, bytes.len, text, found);
    }
  }
  return true;
}

void exports_glovebox_plugin_tool_definitions(exports_glovebox_plugin_tool_list_tool_def_t *tools) {
  tools->ptr = malloc(sizeof *tools->ptr);
  tools->len = 1;
  tool_provider_string_dup(&tools->ptr->name, "find_text");
  tool_provider_string_dup(&tools->ptr->description, "Finds a text in the files of a folder, and returns the places.");
  tool_provider_string_dup(&tools->ptr->parameters, PARAMETERS);
}

// The host has checked that the arguments match the parameters of the tool. An instance of the component serves one call, and its memory
// is freed as a whole, so nothing is freed here.
void exports_glovebox_plugin_tool_call(string_t *name, string_t *arguments, exports_glovebox_plugin_tool_output_t *output) {
  (void)name;
  memset(output, 0, sizeof *output);
  json_t words = json_of(arguments->ptr, arguments->len);
  char *folder = json_text(json_field(words, "folder")), *text = json_text(json_field(words, "text"));
  size_t length = strlen(folder);
  if (length > 0 && folder[length - 1] == '/') folder[length - 1] = 0;
  found_t found = {0};
  error_t error;
  if (!search(folder, text, &found, &error)) {
    found = (found_t){0};
    append_text(&found, "cannot read `");
    append_text(&found, folder);
    append_text(&found, "`: ");
    append(&found, (const char *)error.message.ptr, error.message.len);
    output->is_error = true;
  } else if (found.count == 0) {
    append_text(&found, "not found");
  }
  tool_provider_string_set(&output->content, found.text);
}
