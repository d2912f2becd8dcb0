// Panes: borders between them that can be dragged, and tabs.

import { el } from "./dom.js";

function remembered(name) {
  try {
    return localStorage.getItem(`graph2vid-${name}`);
  } catch {
    return null; // a page from disk may keep nothing
  }
}

export function remember(name, value) {
  try {
    localStorage.setItem(`graph2vid-${name}`, String(value));
  } catch {
    // nothing is kept, and nothing is lost by that
  }
}

// A border that sets the property `--NAME` of a box, in percent of its size; it is remembered.
export function makeBorder(box, name, { label, isRow, usual, least = 15, most = 80 }) {
  let now = Number(remembered(name)) || usual;
  const border = el("div", { class: `pane-border ${isRow ? "rows-border" : "columns-border"}`, role: "separator", tabindex: 0, "aria-label": label, "aria-orientation": isRow ? "horizontal" : "vertical", "aria-valuemin": least, "aria-valuemax": most });
  const set = (value) => {
    now = Math.min(Math.max(value, least), most);
    box.style.setProperty(`--${name}`, `${now}%`);
    border.setAttribute("aria-valuenow", String(Math.round(now)));
  };
  set(now);
  border.addEventListener("pointerdown", (event) => {
    event.preventDefault();
    border.setPointerCapture(event.pointerId);
  });
  border.addEventListener("pointermove", (event) => {
    if (!border.hasPointerCapture(event.pointerId)) return;
    const outer = box.getBoundingClientRect();
    set(isRow ? (100 * (event.clientY - outer.top)) / outer.height : (100 * (outer.right - event.clientX)) / outer.width);
  });
  border.addEventListener("lostpointercapture", () => remember(name, now));
  border.addEventListener("dblclick", () => {
    set(usual);
    remember(name, usual);
  });
  border.addEventListener("keydown", (event) => {
    const by = (isRow ? { ArrowUp: -2, ArrowDown: 2 } : { ArrowLeft: 2, ArrowRight: -2 })[event.key];
    if (!by) return;
    event.preventDefault();
    set(now + by);
    remember(name, now);
  });
  return border;
}

export const isFolded = (name) => remembered(`folded-${name}`) === "yes";

// Tabs: `entries` are [key, title, content, number to show beside the title]; `chosen` is a key. Arrow keys move.
export function makeTabs(label, entries, chosen, tell) {
  const strip = el("div", { class: "pane-tabs", role: "tablist", "aria-label": label });
  const pages = entries.map(([key, title, content]) => el("div", { class: "pane-page", role: "tabpanel", id: `pane-${key}`, "aria-label": title, tabindex: -1 }, content));
  const buttons = entries.map(([key, title, , count]) => el("button", { type: "button", class: "pane-tab", role: "tab", id: `tab-${key}`, "aria-controls": `pane-${key}`, "data-tab": key, onclick: () => show(key) }, title, count ? el("span", { class: "pane-count" }, count) : null));
  function show(wanted) {
    const key = entries.some(([name]) => name === wanted) ? wanted : entries[0][0];
    entries.forEach(([name], at) => {
      pages[at].hidden = name !== key;
      buttons[at].setAttribute("aria-selected", String(name === key));
      buttons[at].tabIndex = name === key ? 0 : -1;
    });
    tell(key);
  }
  strip.addEventListener("keydown", (event) => {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const at = buttons.indexOf(document.activeElement);
    if (!by || at < 0) return;
    event.preventDefault();
    const next = (at + by + buttons.length) % buttons.length;
    show(entries[next][0]);
    buttons[next].focus();
  });
  strip.append(...buttons);
  show(chosen);
  return { element: el("div", { class: "tabbed" }, strip, pages), show };
}
