/**
 * Makes src/geo/world.json of the package world-atlas (Natural Earth, public domain, 1:110m): an SVG path for each country by its two
 * letters, in the Natural Earth projection around 11° E, which cuts through the Bering Strait and no country. The file is checked in, and
 * `npm run check` says if it is not what this script gives. Antarctica is left out.
 */
import { readFileSync, writeFileSync } from "node:fs";

/** Where the map is kept. */
export const KEPT = new URL("../src/geo/world.json", import.meta.url);
const MIDDLE = 11;
/** Units of the map for one of the projection. */
const SCALE = 230;

/** Names of world-atlas that the list of countries spells otherwise. */
const NAMES = {
  "W. Sahara": "EH", "United States of America": "US", "Dem. Rep. Congo": "CD", "Dominican Rep.": "DO", "Falkland Is.": "FK", "Fr. S. Antarctic Lands": "TF", "Timor-Leste": "TL", "Côte d'Ivoire": "CI", "Central African Rep.": "CF",
  Congo: "CG", "Eq. Guinea": "GQ", eSwatini: "SZ", Palestine: "PS", Vanuatu: "VU", Laos: "LA", "North Korea": "KP", "South Korea": "KR", Turkey: "TR", Syria: "SY", "Solomon Is.": "SB", "N. Cyprus": null, Somaliland: null, "Bosnia and Herz.": "BA",
  Macedonia: "MK", "S. Sudan": "SS", Antarctica: null, Czechia: "CZ", Brunei: "BN", Moldova: "MD", Russia: "RU", Vietnam: "VN", Iran: "IR", Venezuela: "VE", Bolivia: "BO", Tanzania: "TZ", Taiwan: "TW", Kosovo: "XK", Myanmar: "MM", "New Caledonia": "NC",
};
/** Territories that databases of addresses count to a country: drawn with it. */
const WITH = { Somaliland: "SO", "N. Cyprus": "CY" };

/** The Natural Earth projection (Šavrič and others, 2011): degrees to units of the map. */
function project([longitude, latitude]) {
  const l = ((longitude - MIDDLE) * Math.PI) / 180;
  const p = (latitude * Math.PI) / 180;
  const p2 = p * p;
  const p4 = p2 * p2;
  const x = l * (0.8707 - 0.131979 * p2 + p4 * (-0.013791 + p4 * (0.003971 * p2 - 0.001529 * p4)));
  const y = p * (1.007226 + p2 * (0.015085 + p4 * (-0.044475 + 0.028874 * p2 - 0.005916 * p4)));
  return [Math.round(x * SCALE), Math.round(-y * SCALE)];
}

function codes() {
  const lines = readFileSync(new URL("../../filters/lib/seclang/assets/countries.txt", import.meta.url), "utf8").trim().split("\n");
  return new Map(lines.map((line) => [line.split(" ").slice(3).join(" "), line.slice(0, 2)]));
}

/** The text of the file. */
export function text() {
  const topology = JSON.parse(readFileSync(new URL("../node_modules/world-atlas/countries-110m.json", import.meta.url), "utf8"));
  const { scale, translate } = topology.transform;
  const arcs = topology.arcs.map((arc) => {
    let [x, y] = [0, 0];
    return arc.map(([dx, dy]) => [(x += dx) * scale[0] + translate[0], (y += dy) * scale[1] + translate[1]]);
  });
  const ring = (indices) => indices.flatMap((index, at) => {
    const points = index < 0 ? [...arcs[~index]].reverse() : arcs[index];
    return at === 0 ? points : points.slice(1);
  });
  const path = (points) => {
    let before = null;
    const whole = points.map(([longitude, latitude]) => {
      let turned = longitude;
      if (before !== null) while (Math.abs(turned - before) > 180) turned += turned < before ? 360 : -360;
      before = turned;
      return [turned, latitude];
    });
    const lowest = Math.min(...whole.map(([longitude]) => longitude));
    // East of the Bering Strait is the left edge.
    const shift = lowest < MIDDLE - 180.5 ? 360 : 0;
    const flat = whole.map(([longitude, latitude]) => project([longitude + shift, latitude])).filter((point, at, all) => at === 0 || point[0] !== all[at - 1][0] || point[1] !== all[at - 1][1]);
    if (flat.length < 3) return "";
    let [x, y] = flat[0];
    const steps = flat.slice(1).map(([a, b]) => {
      const step = `${a - x},${b - y}`;
      [x, y] = [a, b];
      return step;
    });
    return `M${flat[0].join(",")}l${steps.join(" ")}z`;
  };
  const known = codes();
  const countries = {};
  for (const { properties, type, arcs: shape } of topology.objects.countries.geometries) {
    const { name } = properties;
    const code = WITH[name] ?? (name in NAMES ? NAMES[name] : known.get(name));
    if (code === undefined) throw new Error(`world-map.mjs: which country is ${name}?`);
    if (code === null) continue;
    const polygons = type === "Polygon" ? [shape] : shape;
    countries[code] = (countries[code] ?? "") + polygons.flatMap((polygon) => polygon.map((indices) => path(ring(indices)))).join("");
  }
  const rows = Object.entries(countries).sort(([a], [b]) => (a < b ? -1 : 1)).map(([code, shape]) => `    ${JSON.stringify(code)}: ${JSON.stringify(shape)}`);
  const [left, , right] = [project([MIDDLE - 180, 0]), null, project([MIDDLE + 180, 0])];
  const [top, bottom] = [project([0, 84])[1], project([0, -58])[1]];
  return `{\n  "box": ${JSON.stringify([left[0], top, right[0] - left[0], bottom - top])},\n  "countries": {\n${rows.join(",\n")}\n  }\n}\n`;
}

if (process.argv[1] === new URL(import.meta.url).pathname) writeFileSync(KEPT, text());
