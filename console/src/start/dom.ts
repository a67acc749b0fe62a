/** Elements without a renderer: what a browser loads first is made of them. */

/** Attributes; a function is a listener of the event after `on`, `false` leaves the attribute out. */
export type Attributes = Record<string, string | boolean | ((event: Event) => void)>;

/** An element. Texts become text nodes. */
export function el<K extends keyof HTMLElementTagNameMap>(tag: K, attributes: Attributes = {}, ...children: (Node | string)[]): HTMLElementTagNameMap[K] {
  const made = document.createElement(tag);
  for (const name in attributes) {
    const value = attributes[name];
    if (typeof value === "function") made.addEventListener(name.slice(2), value);
    else if (value !== false) made.setAttribute(name, value === true ? "" : String(value));
  }
  made.append(...children);
  return made;
}
