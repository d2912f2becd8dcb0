// The keys: one list says what each does, dispatches them, and is what "?" shows.

import { el } from "./dom.js";

// Each entry: the group that it is listed in, the keys as they are named, what they do in words, and what to do. The name
// of a key is that of the event, with "Shift+", "Alt+" or "Ctrl+" before it ("Ctrl" is the command key of a Mac, too).
export function viewKeys(state) {
  const { transport } = state;
  const doubtful = (by) => () => {
    const index = state.nextDoubtful(by);
    if (index === null) state.say?.("Nothing is doubtful.");
    else state.pick(index);
  };
  const neighbour = (by) => () => {
    const { length } = state.model.segments;
    const focused = /** @type {HTMLElement | null} */ (document.activeElement?.closest?.(".segment[data-index]"));
    const from = focused ? Number(focused.dataset.index) : state.picked ?? state.starts.findLastIndex((start) => start <= state.time) + (by > 0 ? 0 : 1);
    if (!length) return;
    const index = Math.min(Math.max(from + by, 0), length - 1);
    state.pick(index);
    if (focused) state.element.querySelector(`.segment[data-index="${index}"]`)?.focus({ preventScroll: true });
  };
  return [
    ["Play", [" "], "play, pause", transport.toggle],
    ["Play", ["l", "L"], "play; again: faster", transport.faster],
    ["Play", ["k", "K"], "stop", transport.stop],
    ["Play", ["j", "J"], "play backwards; again: faster", transport.backwards],
    ["Play", ["ArrowLeft"], "a frame back", () => transport.step(-1, false)],
    ["Play", ["ArrowRight"], "a frame on", () => transport.step(1, false)],
    ["Play", ["Shift+ArrowLeft"], "a second back", () => transport.step(-1, true)],
    ["Play", ["Shift+ArrowRight"], "a second on", () => transport.step(1, true)],
    ["Play", ["m", "M"], "sound off, on", transport.mute],
    ["Play", ["f", "F"], "full screen", transport.fill],
    ["Go", ["n", "N"], "next doubtful segment", doubtful(1)],
    ["Go", ["p", "P"], "previous doubtful segment", doubtful(-1)],
    ["Go", ["ArrowDown"], "next segment", neighbour(1)],
    ["Go", ["ArrowUp"], "previous segment", neighbour(-1)],
    ["Go", ["Escape"], "give up what is dragged; choose nothing", () => state.cancelDrag?.() || state.select(null)],
    ["Zoom", ["+", "="], "closer (or Ctrl and the wheel, or two fingers)", () => state.zoomBy(2)],
    ["Zoom", ["-"], "farther", () => state.zoomBy(0.5)],
    ["Zoom", ["0"], "the whole video", () => state.zoomBy(0)],
  ];
}

const NAMES = { " ": "Space", ArrowLeft: "←", ArrowRight: "→", ArrowUp: "↑", ArrowDown: "↓", Delete: "Del" };
const OWN = "input:not([type=checkbox]):not([type=radio]), textarea, select, [contenteditable], dialog *";
// What uses Space and Enter itself; a segment, a caption and a step of the graph are used by Enter alone.
const PRESSED = "button:not(.segment):not(.cue), a, summary, video, label, input";

export const nameOf = (key) =>
  key
    .split("+")
    .map((part) => NAMES[part] ?? (part.length === 1 ? part.toUpperCase() : part))
    .join("+");

export function keyOf(event) {
  const key = event.key.length === 1 && event.code.startsWith("Key") && (event.ctrlKey || event.metaKey) ? event.key.toLowerCase() : event.key;
  const held = [event.ctrlKey || event.metaKey ? "Ctrl+" : "", event.altKey ? "Alt+" : "", event.shiftKey && (event.key.length > 1 || event.ctrlKey || event.metaKey) ? "Shift+" : ""];
  return held.join("") + key;
}

// Listens for the keys of a list; "?" shows them. Returns what ends it.
export function bindKeys(list) {
  const all = [...list(), ["Help", ["?"], "these keys", () => showKeys(list())]];
  const acts = new Map(all.flatMap(([, keys, , act]) => keys.map((key) => [key, act])));
  const down = (event) => {
    if (event.defaultPrevented || event.target.matches?.(OWN)) return;
    const key = keyOf(event);
    const act = (event.shiftKey && acts.get(`Shift+${key.toUpperCase()}`)) || acts.get(key); // a capital is the letter too
    if (!act || (key === " " && event.target.matches(PRESSED))) return;
    event.preventDefault();
    act(event);
  };
  // A button is pressed when Space is let go.
  const up = (event) => event.key === " " && event.target.matches?.(".segment, .cue") && event.preventDefault();
  document.addEventListener("keydown", down);
  document.addEventListener("keyup", up);
  return () => {
    document.removeEventListener("keydown", down);
    document.removeEventListener("keyup", up);
  };
}

export function showKeys(list) {
  document.querySelector("dialog.keys")?.remove();
  const groups = grouped(list);
  const row = ([, keys, words]) => el("div", { class: "key-row" }, el("dt", null, el("kbd", null, nameOf(keys[0]))), el("dd", null, words));
  const close = el("button", { type: "button", class: "button", onclick: () => box.close() }, "Close");
  const box = el(
    "dialog",
    { class: "keys panel", "aria-label": "Keys" },
    el("div", { class: "panel-head" }, el("h2", null, "Keys"), close),
    el("div", { class: "key-groups" }, [...groups].map(([name, some]) => el("section", null, el("h3", null, name), el("dl", null, some.map(row))))),
  );
  box.addEventListener("close", () => box.remove());
  box.addEventListener("click", (event) => event.target === box && box.close());
  document.body.append(box);
  box.showModal();
}

function grouped(list) {
  const groups = new Map();
  for (const entry of list) groups.set(entry[0], [...(groups.get(entry[0]) ?? []), entry]);
  return groups;
}
