// Reads the JSON that a component gets. A text that is no JSON gives empty values, and no byte outside of it is read.
#ifndef JSON_H
#define JSON_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

// A value in a text: the bytes from `at` to `end`. A value that does not exist is empty.
typedef struct {
  const char *at, *end;
} json_t;

static inline json_t json_of(const void *text, size_t bytes) {
  return (json_t){(const char *)text, (const char *)text + bytes};
}

static inline bool json_is_none(json_t value) { return value.at == value.end; }

static inline bool json_separates(char one) {
  return one == ' ' || one == '\t' || one == '\r' || one == '\n' || one == ',' || one == ':';
}

// Takes the first value off a text.
static inline json_t json_take(json_t *text) {
  while (text->at < text->end && json_separates(*text->at)) text->at++;
  json_t value = {text->at, text->at};
  bool in_string = false;
  for (unsigned depth = 0; value.end < text->end; value.end++) {
    char one = *value.end;
    if (in_string) {
      if (one == '\\' && value.end + 1 < text->end) value.end++;
      in_string = one != '"';
    } else if (one == '"') {
      in_string = true;
    } else if (one == '{' || one == '[') {
      depth++;
    } else if (one == '}' || one == ']') {
      if (depth == 0) break;
      depth--;
    } else if (depth == 0 && json_separates(one)) {
      break;
    }
  }
  text->at = value.end;
  return value;
}

// Removes the bracket at the beginning of an object or of an array, so that `json_take` takes what it contains.
static inline json_t json_open(json_t value, char bracket) {
  if (json_is_none(value) || *value.at != bracket) return (json_t){value.end, value.end};
  return (json_t){value.at + 1, value.end};
}

// Returns true if a value is this string, which has no characters that JSON escapes.
static inline bool json_is(json_t value, const char *text) {
  size_t bytes = strlen(text);
  return (size_t)(value.end - value.at) == bytes + 2 && *value.at == '"' && memcmp(value.at + 1, text, bytes) == 0;
}

// Returns the field of an object.
static inline json_t json_field(json_t object, const char *name) {
  json_t fields = json_open(json_take(&object), '{');
  for (;;) {
    json_t key = json_take(&fields), value = json_take(&fields);
    if (json_is_none(key) || json_is(key, name)) return value;
  }
}

// Returns true if an array has this string.
static inline bool json_has(json_t array, const char *text) {
  json_t items = json_open(array, '[');
  for (;;) {
    json_t item = json_take(&items);
    if (json_is_none(item)) return false;
    if (json_is(item, text)) return true;
  }
}

// Reads four hexadecimal digits.
static inline unsigned json_unit(const char *at, const char *end) {
  unsigned unit = 0;
  for (int digit = 0; digit < 4 && at < end; digit++, at++) {
    unsigned low = *at | 0x20;
    unit = unit * 16 + (low >= 'a' ? low - 'a' + 10 : low - '0') % 16;
  }
  return unit;
}

static inline char *json_utf8(char *to, unsigned point) {
  if (point < 0x80) {
    *to++ = (char)point;
  } else if (point < 0x800) {
    *to++ = (char)(0xc0 | point >> 6);
    *to++ = (char)(0x80 | (point & 0x3f));
  } else if (point < 0x10000) {
    *to++ = (char)(0xe0 | point >> 12);
    *to++ = (char)(0x80 | (point >> 6 & 0x3f));
    *to++ = (char)(0x80 | (point & 0x3f));
  } else {
    *to++ = (char)(0xf0 | point >> 18);
    *to++ = (char)(0x80 | (point >> 12 & 0x3f));
    *to++ = (char)(0x80 | (point >> 6 & 0x3f));
    *to++ = (char)(0x80 | (point & 0x3f));
  }
  return to;
}

// Returns the character of an escape of two characters.
static inline char json_control(char escaped) {
  switch (escaped) {
    case 'b': return '\b';
    case 'f': return '\f';
    case 'n': return '\n';
    case 'r': return '\r';
    case 't': return '\t';
    default: return escaped;
  }
}

// Returns the text of a string without its escapes, ended by a NUL. The text of any other value is empty.
static inline char *json_text(json_t value) {
  char *text = malloc((size_t)(value.end - value.at) + 1), *to = text;
  if (!json_is_none(value) && *value.at == '"') {
    const char *at = value.at + 1, *end = value.end - 1;
    while (at < end) {
      char one = *at++;
      if (one != '\\' || at == end) {
        *to++ = one;
        continue;
      }
      char escaped = *at++;
      if (escaped != 'u') {
        *to++ = json_control(escaped);
        continue;
      }
      unsigned point = json_unit(at, end);
      at = end - at < 4 ? end : at + 4;
      if (point >= 0xd800 && point < 0xdc00 && end - at >= 6 && at[0] == '\\' && at[1] == 'u') {
        point = 0x10000 + ((point & 0x3ff) << 10) + (json_unit(at + 2, end) & 0x3ff);
        at += 6;
      }
      // A text of the host ends at a NUL in C, and half of a pair is no character.
      if (point == 0 || (point >= 0xd800 && point < 0xe000)) point = 0xfffd;
      to = json_utf8(to, point);
    }
  }
  *to = 0;
  return text;
}

#endif
