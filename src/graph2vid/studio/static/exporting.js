// A menu of what can be saved; and annotations that were made elsewhere.

import { el } from "/view/dom.js";
import * as api from "./api.js";
import { plural, toast, trying } from "./parts.js";

// Reads a file of annotations as corrections, of the video that is shown or of `several`; returns what to say of it, and how.
/** @returns {Promise<[string, string]>} */
export async function imported(context, file, several = false) {
  const path = `/annotations?several=${several}&name=${encodeURIComponent(file.name)}`;
  const read = await api.put(several ? context.path(path, "") : context.path(path), file);
  await context.reload();
  const of = several ? ` of ${plural(read.videos.length, "video")}` : "";
  return [[`${plural(read.corrections, "annotation")}${of} read.`, ...read.notes].join(" "), read.notes.length ? "warn" : "good"];
}

// `entries` are [key, title, suffix, path of what is saved, or what is done].
export function exportMenu(context, { title, entries }) {
  const save = (name, path) => trying(async () => {
    const notes = await api.download(context.path(path));
    toast([`${name} is saved.`, ...notes.map((note) => `Note: ${note}.`)].join(" "), notes.length ? "warn" : "good");
  });
  const entry = ([key, name, suffix, path]) => el("li", null, el("button", { type: "button", "data-key": `export-${key}`, onclick: () => (typeof path === "string" ? save(name, path) : path()) }, el("strong", null, name), el("span", { class: "dim small" }, suffix)));
  const menu = el("details", { class: "menu" }, el("summary", { class: "button", "data-key": "export" }, title), el("ul", { class: "panel menu-list" }, entries.map(entry)));
  menu.addEventListener("toggle", () => {
    const outside = (event) => {
      if (menu.contains(event.target)) return;
      menu.open = false;
      document.removeEventListener("pointerdown", outside);
    };
    if (menu.open) document.addEventListener("pointerdown", outside);
  });
  menu.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !menu.open) return;
    event.preventDefault();
    menu.open = false;
    menu.querySelector("summary").focus();
  });
  return menu;
}
