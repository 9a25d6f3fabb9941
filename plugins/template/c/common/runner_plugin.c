#include "runner_plugin.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define DEEPEST 64

// Text.

slice slice_of(const char *text) { return (slice){(const uint8_t *)text, strlen(text)}; }

slice slice_of_string(plugin_string_t text) { return (slice){text.ptr, text.len}; }

slice slice_of_bytes(plugin_list_u8_t bytes) { return (slice){bytes.ptr, bytes.len}; }

bool same(slice a, slice b) { return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0); }

bool is(slice text, const char *expected) { return same(text, slice_of(expected)); }

static uint8_t small(uint8_t letter) { return letter >= 'A' && letter <= 'Z' ? letter + 32 : letter; }

bool holds(slice text, slice part, bool ignore_case) {
  for (size_t start = 0; start + part.len <= text.len; start++) {
    size_t at = 0;
    while (at < part.len && (text.ptr[start + at] == part.ptr[at] ||
                             (ignore_case && small(text.ptr[start + at]) == small(part.ptr[at])))) {
      at++;
    }
    if (at == part.len) return true;
  }
  return false;
}

static bool is_space(uint8_t byte) { return byte == ' ' || (byte >= '\t' && byte <= '\r'); }

slice trimmed(slice text) {
  while (text.len && is_space(text.ptr[0])) text.ptr++, text.len--;
  while (text.len && is_space(text.ptr[text.len - 1])) text.len--;
  return text;
}

static void reserve(buffer *to, size_t more) {
  if (to->len + more <= to->capacity) return;
  to->capacity = (to->len + more) * 2 < 64 ? 64 : (to->len + more) * 2;
  to->ptr = realloc(to->ptr, to->capacity);
  if (!to->ptr) abort();
}

static void put_byte(buffer *to, uint8_t byte) {
  reserve(to, 1);
  to->ptr[to->len++] = byte;
}

void put_slice(buffer *to, slice text) {
  if (text.len == 0) return;
  reserve(to, text.len);
  memcpy(to->ptr + to->len, text.ptr, text.len);
  to->len += text.len;
}

void put(buffer *to, const char *text) { put_slice(to, slice_of(text)); }

slice slice_of_buffer(const buffer *text) { return (slice){text->ptr, text->len}; }

plugin_string_t finished(buffer *text) {
  plugin_string_t done = {text->ptr, text->len};
  if (text->len == 0) free(text->ptr);
  *text = (buffer){0};
  return done;
}

plugin_list_u8_t finished_bytes(buffer *text) {
  plugin_string_t done = finished(text);
  return (plugin_list_u8_t){done.ptr, done.len};
}

void discard(buffer *text) {
  free(text->ptr);
  *text = (buffer){0};
}

// The length of the character that a text begins with, 0 where it is not UTF-8.
static size_t character(slice text) {
  uint8_t first = text.ptr[0];
  if (first < 0x80) return 1;
  size_t length = first >= 0xc2 && first <= 0xdf ? 2 : (first & 0xf0) == 0xe0 ? 3 : first >= 0xf0 && first <= 0xf4 ? 4 : 0;
  if (length == 0 || length > text.len) return 0;
  for (size_t at = 1; at < length; at++) {
    if ((text.ptr[at] & 0xc0) != 0x80) return 0;
  }
  uint8_t second = text.ptr[1];
  // Longer than need be, half a character, beyond the last one.
  if ((first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f)) return 0;
  if ((first == 0xf0 && second < 0x90) || (first == 0xf4 && second > 0x8f)) return 0;
  return length;
}

// Adds a text's first character, or a replacement for its first byte, and takes it away from the text.
static void move_character(buffer *to, slice *text) {
  size_t length = character(*text);
  if (length) put_slice(to, (slice){text->ptr, length});
  else put(to, "\xef\xbf\xbd");
  size_t taken = length ? length : 1;
  text->ptr += taken;
  text->len -= taken;
}

plugin_string_t owned(slice text) {
  buffer copy = {0};
  reserve(&copy, text.len);
  while (text.len) move_character(&copy, &text);
  return finished(&copy);
}

plugin_string_t owned_text(const char *text) { return owned(slice_of(text)); }

void put_count(buffer *to, uint64_t number) {
  uint8_t digits[20];
  size_t at = sizeof digits;
  do {
    digits[--at] = '0' + number % 10;
    number /= 10;
  } while (number);
  put_slice(to, (slice){digits + at, sizeof digits - at});
}

void put_number(buffer *to, double number) {
  if (!isfinite(number)) {
    put(to, "null");
    return;
  }
  if (number < 0) {
    put(to, "-");
    number = -number;
  }
  int exponent = 0;
  while (number >= 1e15) number /= 10, exponent++;
  if (number > 0 && number < 1e-6) {
    double factor = 1;
    while (number * factor < 1) factor *= 10, exponent--;
    number *= factor;
  }
  // The shortest decimal that is this number; quotients of whole numbers up to 2^53 and powers of ten up to 10^22
  // are exact, so it is found where one of this many digits exists.
  double scale = 1;
  int places = 0;
  while (places < 20 && round(number * scale) / scale != number && number * scale * 10 < 1e15) scale *= 10, places++;
  uint64_t scaled = (uint64_t)round(number * scale);
  uint64_t whole = scaled;
  for (int place = 0; place < places; place++) whole /= 10;
  put_count(to, whole);
  if (places) {
    uint8_t digits[20];
    for (int place = places; place-- > 0; scaled /= 10) digits[place] = '0' + scaled % 10;
    put(to, ".");
    put_slice(to, (slice){digits, (size_t)places});
  }
  if (exponent) {
    put(to, exponent < 0 ? "e-" : "e");
    put_count(to, (uint64_t)abs(exponent));
  }
}

void put_quoted(buffer *to, slice text) {
  static const char HEX[] = "0123456789abcdef";
  put_byte(to, '"');
  while (text.len) {
    uint8_t byte = text.ptr[0];
    if (byte == '"' || byte == '\\') {
      put_byte(to, '\\');
      move_character(to, &text);
    } else if (byte < 0x20) {
      put(to, byte == '\n' ? "\\n" : byte == '\r' ? "\\r" : byte == '\t' ? "\\t" : "\\u00");
      if (byte != '\n' && byte != '\r' && byte != '\t') {
        put_byte(to, (uint8_t)HEX[byte >> 4]);
        put_byte(to, (uint8_t)HEX[byte & 15]);
      }
      text.ptr++, text.len--;
    } else {
      move_character(to, &text);
    }
  }
  put_byte(to, '"');
}

void put_excerpt(buffer *to, slice text, size_t longest) {
  text = trimmed(text);
  size_t shown = 0;
  while (text.len && shown < longest) {
    if (is_space(text.ptr[0]) || text.ptr[0] < 0x20) {
      text = trimmed((slice){text.ptr + 1, text.len - 1});
      put(to, " ");
    } else {
      move_character(to, &text);
    }
    shown++;
  }
  if (text.len) put(to, "…");
}

void put_base64(buffer *to, slice bytes) {
  static const char DIGITS[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  reserve(to, (bytes.len + 2) / 3 * 4);
  for (size_t at = 0; at < bytes.len; at += 3) {
    size_t left = bytes.len - at;
    uint32_t group = (uint32_t)bytes.ptr[at] << 16;
    if (left > 1) group |= (uint32_t)bytes.ptr[at + 1] << 8;
    if (left > 2) group |= bytes.ptr[at + 2];
    put_byte(to, (uint8_t)DIGITS[group >> 18]);
    put_byte(to, (uint8_t)DIGITS[group >> 12 & 63]);
    put_byte(to, left > 1 ? (uint8_t)DIGITS[group >> 6 & 63] : '=');
    put_byte(to, left > 2 ? (uint8_t)DIGITS[group & 63] : '=');
  }
}

// JSON.

static const slice NOTHING = {NULL, 0};

static bool is_blank(uint8_t byte) { return byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r'; }

static slice after_blanks(slice text) {
  while (text.len && is_blank(text.ptr[0])) text.ptr++, text.len--;
  return text;
}

static int hex(uint8_t digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  digit = small(digit);
  return digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
}

// The length of the JSON string that a text begins with, quotes included; 0 where it begins with none.
static size_t string_length(slice text) {
  if (text.len == 0 || text.ptr[0] != '"') return 0;
  for (size_t at = 1; at < text.len; at++) {
    uint8_t byte = text.ptr[at];
    if (byte == '"') return at + 1;
    if (byte < 0x20) return 0;
    if (byte != '\\') continue;
    if (++at == text.len) return 0;
    if (text.ptr[at] == 'u') {
      for (int digit = 0; digit < 4; digit++) {
        if (++at == text.len || hex(text.ptr[at]) < 0) return 0;
      }
    } else if (!strchr("\"\\/bfnrt", text.ptr[at]) || text.ptr[at] == 0) {
      return 0;
    }
  }
  return 0;
}

static size_t digits_length(slice text, size_t at) {
  size_t start = at;
  while (at < text.len && text.ptr[at] >= '0' && text.ptr[at] <= '9') at++;
  return at - start;
}

// The length of the JSON number that a text begins with; 0 where it begins with none.
static size_t number_length(slice text) {
  size_t at = text.len && text.ptr[0] == '-';
  size_t digits = digits_length(text, at);
  if (digits == 0 || (digits > 1 && text.ptr[at] == '0')) return 0;
  at += digits;
  if (at < text.len && text.ptr[at] == '.') {
    digits = digits_length(text, ++at);
    if (digits == 0) return 0;
    at += digits;
  }
  if (at < text.len && small(text.ptr[at]) == 'e') {
    at++;
    if (at < text.len && (text.ptr[at] == '+' || text.ptr[at] == '-')) at++;
    digits = digits_length(text, at);
    if (digits == 0) return 0;
    at += digits;
  }
  return at;
}

// The length of the JSON value that a text begins with and that is no object or list; 0 where there is none.
static size_t scalar_length(slice text) {
  static const char *const WORDS[] = {"true", "false", "null"};
  for (size_t word = 0; word < 3; word++) {
    size_t length = strlen(WORDS[word]);
    if (text.len >= length && memcmp(text.ptr, WORDS[word], length) == 0) return length;
  }
  size_t length = string_length(text);
  return length ? length : number_length(text);
}

// Reads a value from beginning to end. Not by calling itself: deep nesting costs no stack.
slice json(slice text) {
  text = after_blanks(text);
  uint8_t open[DEEPEST];
  size_t depth = 0;
  slice rest = text;
  enum { VALUE, FIRST, FOLLOWS } expected = VALUE;
  for (;;) {
    rest = after_blanks(rest);
    if (expected == FOLLOWS && depth == 0) break;
    if (rest.len == 0) return NOTHING;
    uint8_t byte = rest.ptr[0];
    bool closes = expected != VALUE && depth && byte == open[depth - 1] + 2;
    if (closes) {
      depth--;
      rest.ptr++, rest.len--;
      expected = FOLLOWS;
      continue;
    }
    if (expected == FOLLOWS) {
      if (byte != ',') return NOTHING;
      rest.ptr++, rest.len--;
      rest = after_blanks(rest);
    }
    if (expected != VALUE && open[depth - 1] == '{') {
      // A key stands before the value.
      size_t length = string_length(rest);
      if (length == 0) return NOTHING;
      rest = after_blanks((slice){rest.ptr + length, rest.len - length});
      if (rest.len == 0 || rest.ptr[0] != ':') return NOTHING;
      rest = after_blanks((slice){rest.ptr + 1, rest.len - 1});
    }
    if (rest.len == 0) return NOTHING;
    if (rest.ptr[0] == '{' || rest.ptr[0] == '[') {
      if (depth == DEEPEST) return NOTHING;
      open[depth++] = rest.ptr[0];
      rest.ptr++, rest.len--;
      expected = FIRST;
      continue;
    }
    size_t length = scalar_length(rest);
    if (length == 0) return NOTHING;
    rest.ptr += length, rest.len -= length;
    expected = FOLLOWS;
  }
  if (rest.len) return NOTHING;
  return trimmed(text);
}

// The length of the value that a text begins with, of text that `json` has read.
static size_t value_length(slice text) {
  if (text.len == 0) return 0;
  if (text.ptr[0] != '{' && text.ptr[0] != '[') return scalar_length(text);
  size_t depth = 0;
  for (size_t at = 0; at < text.len; at++) {
    uint8_t byte = text.ptr[at];
    if (byte == '"') {
      size_t length = string_length((slice){text.ptr + at, text.len - at});
      if (length == 0) return 0;
      at += length - 1;
    } else if (byte == '{' || byte == '[') {
      depth++;
    } else if ((byte == '}' || byte == ']') && --depth == 0) {
      return at + 1;
    }
  }
  return 0;
}

// Steps over the bracket or comma before an item; false at the end.
static bool step(slice *rest, uint8_t bracket) {
  if (rest->len == 0 || (rest->ptr[0] != bracket && rest->ptr[0] != ',')) return false;
  *rest = after_blanks((slice){rest->ptr + 1, rest->len - 1});
  return rest->len && rest->ptr[0] != bracket + 2;
}

static bool take(slice *rest, slice *value) {
  *rest = after_blanks(*rest);
  size_t length = value_length(*rest);
  *value = (slice){rest->ptr, length};
  *rest = after_blanks((slice){rest->ptr + length, rest->len - length});
  return length != 0;
}

bool next(slice *rest, slice *item) { return step(rest, '[') && take(rest, item); }

bool next_field(slice *rest, slice *key, slice *value) {
  if (!step(rest, '{') || !take(rest, key) || rest->len == 0) return false;
  *rest = (slice){rest->ptr + 1, rest->len - 1};
  return take(rest, value);
}

// True if two JSON strings are the same text; they can be spelt in several ways.
static bool same_key(slice a, slice b) {
  if (same(a, b)) return true;
  if (!memchr(a.ptr, '\\', a.len) && !memchr(b.ptr, '\\', b.len)) return false;
  buffer one = {0}, other = {0};
  put_text(&one, a);
  put_text(&other, b);
  bool equal = same(slice_of_buffer(&one), slice_of_buffer(&other));
  discard(&one);
  discard(&other);
  return equal;
}

static slice get_field(slice object, slice wanted) {
  slice found = NOTHING, key, value;
  for (slice rest = object; next_field(&rest, &key, &value);) {
    if (same_key(key, wanted)) found = value;
  }
  return found;
}

slice get(slice object, const char *key) {
  if (!is_object(object)) return NOTHING;
  buffer quoted = {0};
  put_quoted(&quoted, slice_of(key));
  slice found = get_field(object, slice_of_buffer(&quoted));
  discard(&quoted);
  return found;
}

bool is_object(slice value) { return value.len && value.ptr[0] == '{'; }

bool is_list(slice value) { return value.len && value.ptr[0] == '['; }

bool is_string(slice value) { return value.len && value.ptr[0] == '"'; }

static uint32_t code_unit(const uint8_t *digits) {
  return (uint32_t)(hex(digits[0]) << 12 | hex(digits[1]) << 8 | hex(digits[2]) << 4 | hex(digits[3]));
}

static void put_code_point(buffer *to, uint32_t point) {
  if (point < 0x80) {
    put_byte(to, (uint8_t)point);
  } else if (point < 0x800) {
    put_byte(to, (uint8_t)(0xc0 | point >> 6));
    put_byte(to, (uint8_t)(0x80 | (point & 0x3f)));
  } else if (point < 0x10000) {
    put_byte(to, (uint8_t)(0xe0 | point >> 12));
    put_byte(to, (uint8_t)(0x80 | (point >> 6 & 0x3f)));
    put_byte(to, (uint8_t)(0x80 | (point & 0x3f)));
  } else {
    put_byte(to, (uint8_t)(0xf0 | point >> 18));
    put_byte(to, (uint8_t)(0x80 | (point >> 12 & 0x3f)));
    put_byte(to, (uint8_t)(0x80 | (point >> 6 & 0x3f)));
    put_byte(to, (uint8_t)(0x80 | (point & 0x3f)));
  }
}

bool is_text(slice value, const char *expected) {
  buffer text = {0};
  bool well = put_text(&text, value) && is(slice_of_buffer(&text), expected);
  discard(&text);
  return well;
}

bool put_text(buffer *to, slice value) {
  if (!is_string(value)) return false;
  reserve(to, value.len);
  slice rest = {value.ptr + 1, value.len - 2};
  while (rest.len) {
    if (rest.ptr[0] != '\\') {
      move_character(to, &rest);
      continue;
    }
    uint8_t escaped = rest.ptr[1];
    size_t taken = 2;
    switch (escaped) {
      case 'b': put_byte(to, '\b'); break;
      case 'f': put_byte(to, '\f'); break;
      case 'n': put_byte(to, '\n'); break;
      case 'r': put_byte(to, '\r'); break;
      case 't': put_byte(to, '\t'); break;
      case 'u': {
        uint32_t unit = code_unit(rest.ptr + 2);
        taken = 6;
        // Characters beyond the first 65536 are spelt as two halves; a half alone is no character.
        bool first = unit >= 0xd800 && unit < 0xdc00;
        if (first && rest.len >= 12 && rest.ptr[6] == '\\' && rest.ptr[7] == 'u') {
          uint32_t low = code_unit(rest.ptr + 8);
          if (low >= 0xdc00 && low < 0xe000) {
            unit = 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
            taken = 12;
          }
        }
        put_code_point(to, unit >= 0xd800 && unit < 0xe000 ? 0xfffd : unit);
        break;
      }
      default: put_byte(to, escaped);
    }
    rest.ptr += taken;
    rest.len -= taken;
  }
  return true;
}

plugin_string_t text_of(slice value) {
  buffer text = {0};
  put_text(&text, value);
  return finished(&text);
}

bool count_of(slice value, uint32_t *count) {
  if (value.len == 0 || value.len > 10) return false;
  uint64_t sum = 0;
  for (size_t at = 0; at < value.len; at++) {
    if (value.ptr[at] < '0' || value.ptr[at] > '9') return false;
    sum = sum * 10 + (value.ptr[at] - '0');
  }
  *count = (uint32_t)sum;
  return sum <= UINT32_MAX;
}

bool number_of(slice value, double *number) {
  char digits[64];
  if (value.len == 0 || value.len >= sizeof digits || number_length(value) != value.len) return false;
  memcpy(digits, value.ptr, value.len);
  digits[value.len] = 0;
  *number = strtod(digits, NULL);
  return isfinite(*number);
}

void put_merged(buffer *to, slice under, slice over) {
  if (!is_object(under) || !is_object(over)) {
    put_slice(to, over);
    return;
  }
  const char *before = "{";
  slice key, value;
  for (slice rest = under; next_field(&rest, &key, &value);) {
    slice laid = get_field(over, key);
    put(to, before);
    put_slice(to, key);
    put(to, ":");
    if (laid.len) put_merged(to, value, laid);
    else put_slice(to, value);
    before = ",";
  }
  for (slice rest = over; next_field(&rest, &key, &value);) {
    if (get_field(under, key).len) continue;
    put(to, before);
    put_slice(to, key);
    put(to, ":");
    put_slice(to, value);
    before = ",";
  }
  put(to, before[0] == '{' ? "{}" : "}");
}

// Configuration.

static const char *const TYPES[] = {"string", "integer", "number", "boolean"};
static const char *const EXPECTED[] = {"a string", "a whole number", "a number", "true or false"};

plugin_string_t schema(const option *options, size_t count) {
  buffer text = {0};
  put(&text, "{\"type\":\"object\",\"properties\":{");
  for (size_t at = 0; at < count; at++) {
    if (at) put(&text, ",");
    put_quoted(&text, slice_of(options[at].key));
    put(&text, ":{\"description\":");
    put_quoted(&text, slice_of(options[at].description));
    put(&text, ",\"type\":\"");
    put(&text, TYPES[options[at].type]);
    put(&text, options[at].type == OPTION_COUNT ? "\",\"minimum\":0,\"default\":" : "\",\"default\":");
    put(&text, options[at].fallback);
    put(&text, "}");
  }
  put(&text, "},\"additionalProperties\":false}");
  return finished(&text);
}

static bool set(const option *option, slice value, void *structure) {
  void *to = (uint8_t *)structure + option->offset;
  switch (option->type) {
    case OPTION_STRING:
      if (!is_string(value)) return false;
      *(plugin_string_t *)to = text_of(value);
      return true;
    case OPTION_COUNT: return count_of(value, to);
    case OPTION_NUMBER: return number_of(value, to);
    case OPTION_BOOLEAN:
      *(bool *)to = is(value, "true");
      return is(value, "true") || is(value, "false");
  }
  return false;
}

// Begins a mistake about a key, which is a JSON string.
static void put_mistaken(buffer *to, slice key) {
  put(to, to->len ? "; key `" : "key `");
  put_text(to, key);
  put(to, "`: ");
}

bool configured(plugin_string_t *config, const option *options, size_t count, void *structure, types_error_t *error) {
  slice given = json(slice_of_string(*config)), key, value;
  buffer mistakes = {0};
  for (size_t at = 0; at < count; at++) {
    value = get(given, options[at].key);
    if (set(&options[at], value.len ? value : slice_of(options[at].fallback), structure)) continue;
    put(&mistakes, mistakes.len ? "; key `" : "key `");
    put(&mistakes, options[at].key);
    put(&mistakes, "`: expected ");
    put(&mistakes, EXPECTED[options[at].type]);
    put(&mistakes, ", found ");
    put_excerpt(&mistakes, value, 60);
  }
  for (slice rest = given; next_field(&rest, &key, &value);) {
    bool known = false;
    for (size_t at = 0; at < count && !known; at++) {
      buffer name = {0};
      put_text(&name, key);
      known = is(slice_of_buffer(&name), options[at].key);
      discard(&name);
    }
    if (known) continue;
    put_mistaken(&mistakes, key);
    put(&mistakes, "there is no such key; known: ");
    for (size_t at = 0; at < count; at++) {
      put(&mistakes, at ? ", `" : "`");
      put(&mistakes, options[at].key);
      put(&mistakes, "`");
    }
    if (count == 0) put(&mistakes, "none");
  }
  plugin_string_free(config);
  if (mistakes.len == 0) return true;
  return fail(error, TYPES_ERROR_INVALID_CONFIG, &mistakes);
}

bool fail(types_error_t *error, uint8_t tag, buffer *sentence) {
  error->tag = tag;
  error->val.other = finished(sentence);
  return false;
}

bool fail_text(types_error_t *error, uint8_t tag, const char *sentence) {
  buffer text = {0};
  put(&text, sentence);
  return fail(error, tag, &text);
}

void note(log_level_t level, const char *line) {
  plugin_string_t text = owned_text(line);
  log_write(level, &text);
  plugin_string_free(&text);
}

void *grown(void *list, size_t length, size_t *capacity, size_t element) {
  if (length < *capacity) return list;
  *capacity = *capacity ? *capacity * 2 : 16;
  list = realloc(list, *capacity * element);
  if (!list) abort();
  return list;
}
