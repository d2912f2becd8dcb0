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

// A border that sets the property `--NAME` of a box: how far it is from that `side` of it, in percent; it is remembered.
// Where nothing is `usual`, the style decides until it is dragged.
export function makeBorder(box, name, { label, side, usual = null, least = 15, most = 80 }) {
  const isRow = side === "top";
  let now = Number(remembered(name)) || usual;
  const border = el("div", { class: `pane-border ${isRow ? "rows-border" : "columns-border"}`, role: "separator", tabindex: 0, "aria-label": label, "aria-orientation": isRow ? "horizontal" : "vertical", "aria-valuemin": least, "aria-valuemax": most });
  const measured = () => (isRow ? (100 * border.offsetTop) / box.clientHeight : (100 * border.offsetLeft) / box.clientWidth) || least;
  const set = (value) => {
    now = value && Math.min(Math.max(value, least), most);
    if (now) box.style.setProperty(`--${name}`, `${now}%`);
    else box.style.removeProperty(`--${name}`);
    border.setAttribute("aria-valuenow", String(Math.round(now ?? measured())));
  };
  set(now);
  border.addEventListener("pointerdown", (event) => {
    event.preventDefault();
    border.setPointerCapture(event.pointerId);
  });
  border.addEventListener("pointermove", (event) => {
    if (!border.hasPointerCapture(event.pointerId)) return;
    const outer = box.getBoundingClientRect();
    set(isRow ? (100 * (event.clientY - outer.top)) / outer.height : (100 * Math.abs(outer[side] - event.clientX)) / outer.width);
  });
  border.addEventListener("lostpointercapture", () => remember(name, now ?? ""));
  border.addEventListener("dblclick", () => {
    set(usual);
    remember(name, usual ?? "");
  });
  border.addEventListener("keydown", (event) => {
    const by = { top: { ArrowUp: -2, ArrowDown: 2 }, left: { ArrowLeft: -2, ArrowRight: 2 }, right: { ArrowLeft: 2, ArrowRight: -2 } }[side][event.key];
    if (!by) return;
    event.preventDefault();
    set((now ?? measured()) + by);
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
