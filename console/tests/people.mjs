/** What tests of operators need: codes of an authenticator app (RFC 6238). */
import { createHmac } from "node:crypto";

const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/** The bytes of a base32 text (RFC 4648), as secrets of authenticator apps are written. */
export function base32(text) {
  let bits = "";
  for (const letter of text.replace(/[\s=]/g, "").toUpperCase()) bits += ALPHABET.indexOf(letter).toString(2).padStart(5, "0");
  return Buffer.from(bits.match(/.{8}/g).map((byte) => parseInt(byte, 2)));
}

/** The code of a secret `steps` steps of 30 seconds from now: each is accepted once, so a test that needs several takes neighbours. */
export function code(secret, steps = 0, now = Date.now()) {
  const counter = Buffer.alloc(8);
  counter.writeBigUInt64BE(BigInt(Math.floor(now / 30_000) + steps));
  const digest = createHmac("sha1", base32(secret)).update(counter).digest();
  const at = digest.at(-1) & 15;
  return String((digest.readUInt32BE(at) & 0x7fffffff) % 1_000_000).padStart(6, "0");
}
