// Small parts of pages that several of them use.

import { el, icon } from "/view/dom.js";

export const ICONS = {
  plus: "M11 5h2v6h6v2h-6v6h-2v-6H5v-2h6z",
  undo: "M10 3.5 3.5 10l6.5 6.5V12h4.5a3.5 3.5 0 0 1 0 7H10v2.5h4.5a6 6 0 0 0 0-12H10z",
  redo: "M14 3.5 20.5 10 14 16.5V12H9.5a3.5 3.5 0 0 0 0 7H14v2.5H9.5a6 6 0 0 1 0-12H14z",
  bin: "M9 4h6l1 2h4v2H4V6h4zM6 9h12l-1 11H7z",
  turn: "M7 7h9l-2.5-2.5L15 3l5 5-5 5-1.5-1.5L16 9H7zM17 17H8l2.5 2.5L9 21l-5-5 5-5 1.5 1.5L8 15h9z",
  play: "M8 5v14l11-7z",
  back: "M15 5l-7 7 7 7V5z",
  forth: "M9 5l7 7-7 7V5z",
  tick: "M9.5 16.2 5.3 12l-1.4 1.4 5.6 5.6L20.5 8l-1.4-1.4z",
  open: "M5 20h14v-2H5zM12 3 6 9h4v6h4V9h4z",
  save: "M5 20h14v-2H5zM19 9h-4V3H9v6H5l7 7z",
  film: "M4 5h16v14H4zm2 2v2h2V7zm0 4v2h2v-2zm0 4v2h2v-2zm10-8v2h2V7zm0 4v2h2v-2zm0 4v2h2v-2zm-6-8v10h4V7z",
  pin: "M14 3l7 7-3 1-4 4-.5 4.5L9 15l-5 6-1-1 6-5-4.5-4.5L9 10l4-4z",
  cross: "M6.4 5 12 10.6 17.6 5 19 6.4 13.4 12l5.6 5.6-1.4 1.4-5.6-5.6L6.4 19 5 17.6l5.6-5.6L5 6.4z",
  link: "M10 13a4 4 0 0 0 6 .5l3-3a4 4 0 0 0-5.7-5.7l-1.5 1.5 1.4 1.4 1.5-1.5a2 2 0 0 1 2.9 2.9l-3 3a2 2 0 0 1-3-.3zM14 11a4 4 0 0 0-6-.5l-3 3a4 4 0 0 0 5.7 5.7l1.5-1.5-1.4-1.4-1.5 1.5a2 2 0 0 1-2.9-2.9l3-3a2 2 0 0 1 3 .3z",
};

/** @typedef {{kind?: string, sign?: string | null, key?: string | null, pressed?: string | null, [attribute: string]: any}} ButtonOptions */

/**
 * @param {string} text
 * @param {(event: MouseEvent) => void} onclick
 * @param {ButtonOptions} options
 */
export function button(text, onclick, { kind = "", sign = null, key = null, pressed = null, ...attributes } = {}) {
  const drawn = sign ? icon(ICONS[sign]) : null;
  const does = pressed ? el("kbd", { "aria-hidden": "true" }, pressed) : null; // the key that does the same
  return el("button", { type: "button", class: `button ${kind}`, "data-key": key, onclick, ...attributes }, drawn, text ? el("span", null, text) : null, does);
}

// A still of a video; where there is none, an empty frame.
export function picture(path) {
  const made = el("img", { class: "still", src: `/api/${path}`, alt: "", loading: "lazy", width: 320, height: 180 });
  made.addEventListener("error", () => made.removeAttribute("src"));
  return made;
}

/**
 * @param {string} title
 * @param {{tools?: any, name?: string, level?: "h1" | "h2" | "h3"}} options
 * @param {...any} content
 */
export function panel(title, { tools = null, name = "", level = "h2" } = {}, ...content) {
  return el("section", { class: `panel ${name}`, "aria-label": title }, el("div", { class: "panel-head" }, el(level, null, title), tools), ...content);
}

export function labelled(text, control, hint = null) {
  return el("label", { class: "labelled" }, el("span", { class: "label-text" }, text), control, hint ? el("span", { class: "dim small" }, hint) : null);
}

export function choice(options, { value = "", onchange = null, key = null, label = null } = {}) {
  const made = el("select", { class: "field", "data-key": key, "aria-label": label, onchange }, options.map(([name, text]) => el("option", { value: name }, text)));
  made.value = value;
  return made;
}

// A button that asks for a file.
/**
 * @param {string} text
 * @param {string} accept
 * @param {(taken: any) => void} take
 * @param {ButtonOptions & {multiple?: boolean}} options
 */
export function fileButton(text, accept, take, { multiple = false, ...attributes } = {}) {
  const input = el("input", { type: "file", accept, multiple, class: "visually-hidden", tabindex: -1, "aria-hidden": "true" });
  input.addEventListener("change", () => {
    if (input.files.length) take(multiple ? [...input.files] : input.files[0]);
    input.value = "";
  });
  return el("span", { class: "file-button" }, button(text, () => input.click(), { sign: "open", ...attributes }), input);
}

// Says something for a while; what went wrong stays until it is dismissed. A refusal goes as soon as something else is done.
// `act` and `words` offer something to do about it.
export function toast(text, kind = "good", { act = null, words = "", isRefusal = false } = {}) {
  const place = document.getElementById("toasts");
  const go = () => {
    made.remove();
    act();
  };
  const made = el("div", { class: `toast ${kind}`, "data-refusal": isRefusal }, el("p", null, text), act ? button(words, go, { kind: "small" }) : null, button("", () => made.remove(), { sign: "cross", kind: "round quiet", "aria-label": "Dismiss" }));
  for (const old of place.children) if (old.firstChild.textContent === text) old.remove(); // once is enough
  for (const old of place.querySelectorAll(".toast.good")) old.remove(); // what was done before is seen by now
  while (place.children.length > 2) place.firstChild.remove();
  place.append(made);
  if (kind === "good") setTimeout(() => made.remove(), act ? 8000 : 4000);
  return made;
}

export function forgetRefusals() {
  for (const one of document.querySelectorAll(".toast[data-refusal]")) one.remove();
}

// Does something and tells what goes wrong.
export async function trying(work) {
  try {
    const done = await work();
    return done;
  } catch (error) {
    toast(error.message, "bad", { isRefusal: error.status === 422 || error.status === 409 });
    if (error.status === undefined) throw error;
    return undefined;
  }
}

// Draws anew and keeps the focus on what has the same data-key.
export function keepingFocus(container, draw) {
  const key = container.contains(document.activeElement) ? /** @type {HTMLElement} */ (document.activeElement).dataset.key : null;
  draw();
  if (key) [...container.querySelectorAll("[data-key]")].find((one) => one.dataset.key === key)?.focus();
}

export function formatBytes(bytes) {
  if (bytes < 1e6) return `${Math.max(1, Math.round(bytes / 1e3))} kB`;
  return bytes < 1e9 ? `${(bytes / 1e6).toFixed(1)} MB` : `${(bytes / 1e9).toFixed(2)} GB`;
}

export function shortened(text, most) {
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}

export function plural(number, noun) {
  return `${number} ${noun}${number === 1 ? "" : "s"}`;
}

// How far a stage is, and how long it will take; how long it has taken where that is all that is known.
export function timeLeft({ done, total, seconds }) {
  const words = (time) => (time < 90 ? plural(Math.max(1, Math.round(time)), "second") : plural(Math.round(time / 60), "minute"));
  if (!total || !done) return seconds >= 3 ? `for ${words(seconds)}` : "";
  const share = Math.min(1, done / total);
  const left = share > 0.02 && seconds >= 2 ? ` · about ${words((seconds * (1 - share)) / share)} left` : "";
  return `${Math.round(100 * share)}%${left}`;
}
