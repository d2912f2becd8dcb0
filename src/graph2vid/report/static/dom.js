// Elements without HTML strings: what users wrote is only ever text.

const SVG = "http://www.w3.org/2000/svg";

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "style") for (const [key, entry] of Object.entries(value)) node.style.setProperty(key, entry);
    else if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return node;
}

/**
 * @template {keyof HTMLElementTagNameMap} T
 * @param {T} tag
 * @param {Record<string, any> | null} [attributes]
 * @param {...any} children
 * @returns {HTMLElementTagNameMap[T]}
 */
export function el(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/**
 * The element that an event is about.
 * @param {Event} event
 */
export const targetOf = (event) => /** @type {HTMLElement} */ (event.target);

export function svg(tag, attributes, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

export function icon(path) {
  return svg("svg", { class: "icon", viewBox: "0 0 24 24", "aria-hidden": "true" }, svg("path", { d: path }));
}

// The number of a step: its place in the procedure.
export function chip(step) {
  const style = { "--colour": step.colour, "--ink": step.ink };
  return el("span", { class: step.place ? "chip" : "chip absent", style, "aria-hidden": "true" }, step.number ?? "–");
}

// A place in the order found, in words that no number of a step looks like.
export function ordinal(place) {
  const ending = [11, 12, 13].includes(place % 100) ? "th" : (["th", "st", "nd", "rd"][place % 10] ?? "th");
  return `${place}${ending}`;
}

// Why nothing of a step is seen.
export function absence({ untaken, optional, absent }) {
  if (untaken) return "done another way";
  const sure = absent === null ? "" : ` (${Math.round(100 * absent)}% sure)`;
  return `${optional ? "optional, not shown" : "not shown"}${sure}`;
}

// One tab stop for a group of controls: arrows move the focus. `neighbour(current, key)` returns where a key leads.
export function rove(group, selector, neighbour) {
  const members = () => [...group.querySelectorAll(selector)];
  const hold = (chosen) => {
    for (const member of members()) member.tabIndex = member === chosen ? 0 : -1;
  };
  group.addEventListener("focusin", (event) => {
    const member = event.target.closest(selector);
    if (member) hold(member);
  });
  group.addEventListener("keydown", (event) => {
    const member = event.target.closest(selector);
    if (!member || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
    const all = members();
    const target = { Home: all[0], End: all.at(-1) }[event.key] ?? neighbour(member, event.key, all);
    if (!target) return;
    event.preventDefault();
    target.focus();
    target.scrollIntoView({ block: "nearest", inline: "nearest" });
  });
  hold(members()[0]);
}
