/** The world, each country shaded by how much came from it. The table beside it says the same, and is the way for the keyboard. */
import { t } from "../i18n";
import world from "./world.json";

const { box, countries } = world as { box: number[]; countries: Record<string, string> };
const SHADES = 5;

/** Whether the map has the country: the smallest ones have no room in it. */
export const isDrawn = (country: string) => Object.hasOwn(countries, country);

/** The shade of a value, 1 to 5, by its logarithm: a few countries send most. */
export function shade(value: number, most: number): number {
  if (value <= 0) return 0;
  return most <= 1 ? SHADES : Math.min(SHADES, 1 + Math.floor((Math.log(value) / Math.log(most)) * (SHADES - 0.01)));
}

/** The map. `values` are by the two letters of countries; `onChoose` gets those of a country that is clicked. */
export default function WorldMap({ label, values, names, chosen, onChoose }: { label: string; values: Record<string, number>; names: Record<string, string>; chosen: string; onChoose: (country: string) => void }) {
  const most = Math.max(1, ...Object.values(values));
  return (
    <figure class="world">
      <svg viewBox={box.join(" ")} role="img" aria-label={label}>
        {Object.entries(countries).map(([country, path]) => {
          const value = values[country] ?? 0;
          return (
            <path key={country} d={path} class={`heat-${shade(value, most)} ${country === chosen ? "chosen" : ""} ${value ? "there" : ""}`} data-country={country} onClick={() => value && onChoose(country)}>
              {value > 0 && <title>{t("geo.requests", { country: names[country] ?? country, requests: value })}</title>}
            </path>
          );
        })}
      </svg>
      <figcaption class="muted">
        <span>{t("geo.few")}</span>
        {Array.from({ length: SHADES }, (_, index) => <span key={index} class={`heat-key heat-${index + 1}`} aria-hidden="true" />)}
        <span>{t("geo.most", { requests: most })}</span>
        <span>{t("geo.credit")}</span>
      </figcaption>
    </figure>
  );
}
