// What people write: sentences, titles, code, mails and searches, from `content.json` and a seed.

import { readFileSync } from "node:fs";
import { deflateSync } from "node:zlib";

const data = JSON.parse(readFileSync(new URL("content.json", import.meta.url)));
export const LANGUAGES = Object.keys(data.words);
export const CODE = Object.keys(data.code);

// A generator of numbers below 1 that repeats itself for the same seed.
export function chance(seed) {
  let state = seed >>> 0 || 1;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

export class Content {
  constructor(seed, language, people) {
    this.random = chance(seed);
    this.language = language;
    this.people = people;
  }

  number(low, high) {
    return low + Math.floor(this.random() * (high - low + 1));
  }

  pick(list) {
    return list[Math.floor(this.random() * list.length)];
  }

  often(share) {
    return this.random() < share;
  }

  // The person's own language, or one that they also write.
  tongue() {
    return this.often(0.6) ? this.language : this.pick(LANGUAGES);
  }

  word(language = this.tongue()) {
    return this.pick(data.words[language]);
  }

  identifier() {
    return `${this.pick(["count", "find", "load", "make", "sort", "read"])}_${this.pick(["boats", "rows", "keys", "users", "files", "pages"])}${this.number(1, 99)}`;
  }

  person() {
    return this.pick(this.people);
  }

  // Fills the marks of a pattern: §w a word, §n a number, §s a sentence, and so on.
  fill(pattern, language = this.tongue(), extra = {}) {
    const marks = {
      w: () => this.word(language), n: () => String(this.number(1, 99)), s: () => this.sentence(), id: () => this.identifier(),
      name: () => this.person().name, q: () => this.sentence("en").replaceAll("'", "''").replaceAll("\\", "\\\\"),
      code: () => escape(this.code()), ...extra,
    };
    return pattern.replace(/§(name|code|id|[wnsqtc])/g, (whole, mark) => marks[mark]?.() ?? whole);
  }

  sentence(language = this.tongue()) {
    return this.fill(this.pick(data.sentences[language]), language);
  }

  title(language = this.tongue()) {
    const words = [this.word(language), this.word(language)];
    const text = this.often(0.2) ? this.sentence(language).slice(0, 70) : words.join(language === "ja" || language === "zh" ? "と" : " ");
    return `${text[0].toUpperCase()}${text.slice(1)} ${this.number(1, 9999)}`;
  }

  text(low = 1, high = 5) {
    const language = this.tongue();
    const lines = Array.from({ length: this.number(low, high) }, () => this.sentence(this.often(0.9) ? language : "en"));
    return lines.join(this.often(0.3) ? "\n\n" : " ");
  }

  search() {
    return this.often(0.6) ? this.fill(this.pick(data.searches)) : `${this.word()} ${this.often(0.5) ? this.word() : this.number(1, 400)}`;
  }

  code(kind = this.pick(CODE)) {
    return this.fill(this.pick(data.code[kind]), "en");
  }

  html(low = 1, high = 6) {
    return Array.from({ length: this.number(low, high) }, () => this.fill(this.pick(data.html))).join("\n");
  }

  sql(table, column) {
    return this.fill(this.pick(data.sql), this.tongue(), { t: () => table, c: () => column, w: () => this.word().replaceAll("'", "''") });
  }

  // A file to upload: its name, its type and its bytes in base64.
  file() {
    const base = `${this.pick(["plan", "photo", "Übersicht", "notes (1)", "list", "схема", "o'brien", "report.final"])}-${this.number(1, 9999)}`;
    const kinds = [
      () => [`${base}.txt`, "text/plain", Buffer.from(this.text(2, 9))],
      () => [`${base}.csv`, "text/csv", Buffer.from(Array.from({ length: 12 }, () => `${this.number(1, 999)};"${this.word()}";${this.number(1, 99)},5`).join("\r\n"))],
      () => [`${base}.png`, "image/png", png(this)],
      () => [`${base}.png`, "image/png", png(this)],
      () => [`${base}.pdf`, "application/pdf", pdf(this)],
    ];
    const [name, type, bytes] = this.pick(kinds)();
    return { name, type, base64: bytes.toString("base64") };
  }

  picture() {
    return { name: `photo-${this.number(1, 99999)}.png`, type: "image/png", base64: png(this).toString("base64") };
  }
}

export function escape(text) {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

// A small picture of coloured noise.
function png(content) {
  const size = content.number(6, 24);
  const rows = Buffer.from(Array.from({ length: size * (size * 3 + 1) }, (_, at) => (at % (size * 3 + 1) === 0 ? 0 : content.number(0, 255))));
  const chunk = (name, bytes) => {
    const body = Buffer.concat([Buffer.from(name), bytes]);
    const out = Buffer.alloc(body.length + 8);
    out.writeUInt32BE(bytes.length, 0);
    body.copy(out, 4);
    out.writeUInt32BE(crc(body), body.length + 4);
    return out;
  };
  const header = Buffer.from([0, 0, 0, size, 0, 0, 0, size, 8, 2, 0, 0, 0]);
  return Buffer.concat([
    Buffer.from("89504e470d0a1a0a", "hex"), chunk("IHDR", header), chunk("IDAT", deflateSync(rows)), chunk("IEND", Buffer.alloc(0)),
  ]);
}

function crc(bytes) {
  let sum = ~0;
  for (const byte of bytes) {
    sum ^= byte;
    for (let bit = 0; bit < 8; bit++) sum = sum & 1 ? (sum >>> 1) ^ 0xedb88320 : sum >>> 1;
  }
  return ~sum >>> 0;
}

// A document of one page with a line of text.
function pdf(content) {
  const text = `BT /F1 12 Tf 40 700 Td (${content.sentence("en").replace(/[()\\]/g, " ")}) Tj ET`;
  return Buffer.from(`%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj\n`
    + `3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Contents 4 0 R>>endobj\n4 0 obj<</Length ${text.length}>>stream\n${text}\nendstream endobj\ntrailer<</Root 1 0 R>>\n%%EOF\n`);
}
