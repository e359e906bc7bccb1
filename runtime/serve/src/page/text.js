// Text of stages, files and models, made visible: control characters, direction controls and characters without width are
// shown as escapes. The ranges are those of `runtime/names/src/visible.rs`, which a test compares.

export const DECEPTIVE = [
  [0x0, 0x1f], [0x7f, 0x9f],
  [0xad, 0xad], [0x34f, 0x34f], [0x61c, 0x61c], [0x115f, 0x1160], [0x17b4, 0x17b5], [0x180b, 0x180f], [0x3164, 0x3164], [0xffa0, 0xffa0],
  [0x200b, 0x200f], [0x2028, 0x202e], [0x2060, 0x206f], [0xfeff, 0xfeff],
  [0xfff0, 0xfffb], [0x1bca0, 0x1bca3], [0x1d173, 0x1d17a], [0xe0000, 0xe0fff],
];

function range(first, last) {
  return `\\u{${first.toString(16)}}-\\u{${last.toString(16)}}`;
}

const CLASS = DECEPTIVE.map(([first, last]) => range(first, last)).join("");
const ANY = new RegExp(`[${CLASS}]`, "u");
const ALL = new RegExp(`[${CLASS}]`, "gu");

function escaped(character) {
  const code = character.codePointAt(0);
  if (character === "\n") return "\\n";
  if (character === "\r") return "\\r";
  if (character === "\t") return "\\t";
  return code < 0x80 ? `\\x${code.toString(16).padStart(2, "0")}` : `\\u{${code.toString(16)}}`;
}

/** Returns one line of foreign text, line breaks and tabs escaped too. */
export function line(text) {
  const string = String(text ?? "");
  return ANY.test(string) ? string.replace(ALL, escaped) : string;
}

/** Returns foreign text of several lines. Only line breaks and tabs are kept. */
export function block(text) {
  const string = String(text ?? "").replaceAll("\r\n", "\n");
  return string.replace(ALL, (character) => (character === "\n" || character === "\t" ? character : escaped(character)));
}

/** Returns one line of at most this many characters. */
export function short(text, most) {
  const one = line(text);
  return one.length > most ? `${one.slice(0, most - 1)}…` : one;
}

/** Returns a command line as a person can paste it. */
export function quoted(argv) {
  return argv.map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`)).join(" ");
}

export function bytes(count) {
  if (count == null) return "?";
  if (count < 1024) return `${count} bytes`;
  const unit = count < 1 << 20 ? ["KiB", 1024] : count < 1 << 30 ? ["MiB", 1 << 20] : ["GiB", 1 << 30];
  return `${(count / unit[1]).toFixed(1)} ${unit[0]}`;
}

export function duration(ms) {
  if (ms == null) return "";
  if (ms < 1000) return `${ms} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`;
  const seconds = Math.floor(ms / 1000);
  const two = (number) => String(number).padStart(2, "0");
  const hours = Math.floor(seconds / 3600);
  const rest = `${two(Math.floor(seconds / 60) % 60)}:${two(seconds % 60)}`;
  return hours > 0 ? `${hours}:${rest}` : rest;
}

/** Returns millionths of a dollar. An estimate has a tilde. */
export function money(micros, isEstimated) {
  return micros == null ? "" : `${isEstimated ? "~" : ""}$${(micros / 1e6).toFixed(2)}`;
}

export function time(text) {
  const at = new Date(text);
  return Number.isNaN(at.getTime()) ? line(text) : at.toLocaleTimeString([], { hour12: false });
}

export function count(number, one, many) {
  return `${number.toLocaleString("en")} ${number === 1 ? one : (many ?? `${one}s`)}`;
}

export function digest(text) {
  return line(text ?? "").slice(0, 19);
}
