/** Small databases in the MaxMind format, and a server that control planes fetch files from. */
import { createServer } from "node:http";
import { isIPv6 } from "node:net";

/** The bits of an address below `::/96`, or of one of IPv6. */
function bitsOf(address) {
  if (!isIPv6(address)) return "0".repeat(96) + address.split(".").map((part) => Number(part).toString(2).padStart(8, "0")).join("");
  const [head, tail = ""] = address.split("::");
  const words = (part) => part.split(":").filter(Boolean);
  const filled = [...words(head), ...Array(8 - words(head).length - words(tail).length).fill("0"), ...words(tail)];
  return filled.map((word) => parseInt(word, 16).toString(2).padStart(16, "0")).join("");
}

/** A whole number in so many bytes. */
const whole = (value, bytes) => Buffer.from(value.toString(16).padStart(2 * bytes, "0"), "hex");

/** The head of a value of a type, with its size: at most 284 here. */
function head(kind, size) {
  const [first, more] = size < 29 ? [size, []] : [29, [size - 29]];
  return Buffer.from([...(kind <= 7 ? [(kind << 5) | first] : [first, kind - 7]), ...more]);
}

/** A value: a text, a whole number of 16 bits, or a list or an object of these; what is encoded already stays. */
function encoded(value) {
  if (typeof value === "string") return Buffer.concat([head(2, Buffer.byteLength(value)), Buffer.from(value)]);
  if (typeof value === "number") return Buffer.concat([head(5, 2), whole(value, 2)]);
  if (Buffer.isBuffer(value)) return value;
  if (Array.isArray(value)) return Buffer.concat([head(11, value.length), ...value.map(encoded)]);
  return Buffer.concat([head(7, Object.keys(value).length), ...Object.entries(value).flatMap(([name, field]) => [encoded(name), encoded(field)])]);
}

/** A database of networks, such as `203.0.113.0/24`, each with its record. */
export function database(networks) {
  const nodes = [[null, null]];
  let data = Buffer.alloc(0);
  for (const [network, record] of Object.entries(networks)) {
    const [address, length] = network.split("/");
    const bits = bitsOf(address).slice(0, Number(length) + (isIPv6(address) ? 0 : 96));
    let node = nodes[0];
    for (const bit of bits.slice(0, -1)) {
      if (node[bit] === null) node[bit] = { node: nodes.push([null, null]) - 1 };
      node = nodes[node[bit].node];
    }
    node[bits.at(-1)] = { data: data.length };
    data = Buffer.concat([data, encoded(record)]);
  }
  const leads = (side) => whole(side === null ? nodes.length : "node" in side ? side.node : nodes.length + 16 + side.data, 4);
  // Two numbers of types that no other value has: of 32 and of 64 bits.
  const [node_count, build_epoch] = [Buffer.concat([head(6, 4), whole(nodes.length, 4)]), Buffer.concat([head(9, 8), whole(1, 8)])];
  const about = { node_count, record_size: 32, ip_version: 6, binary_format_major_version: 2, binary_format_minor_version: 0, build_epoch, database_type: "Test", languages: ["en"], description: { en: "a test" } };
  return Buffer.concat([...nodes.flat().map(leads), Buffer.alloc(16), data, Buffer.from("\xab\xcd\xefMaxMind.com", "latin1"), encoded(about)]);
}

/** Serves files by their paths. Answers `{url, close}`. */
export async function serveFiles(files) {
  const server = createServer((request, response) => {
    const file = files[request.url];
    response.writeHead(file === undefined ? 404 : 200).end(file);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { url: `http://127.0.0.1:${server.address().port}`, close: () => (server.closeAllConnections(), server.close()) };
}
