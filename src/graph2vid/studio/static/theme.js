// The switch between light and dark.

import { el, icon } from "/view/dom.js";

const MOON = "M20 14.5A8.5 8.5 0 0 1 9.5 4 8.5 8.5 0 1 0 20 14.5z";
const KEY = "graph2vid-theme";

export function themeSwitch() {
  const root = document.documentElement;
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
  const made = el("button", { type: "button", class: "button theme-switch" }, icon(MOON), el("span", null, "Dark"));
  const show = () => made.setAttribute("aria-pressed", String(isDark()));
  const kept = localStorage.getItem(KEY);
  if (["light", "dark"].includes(kept)) root.dataset.theme = kept;
  made.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    localStorage.setItem(KEY, root.dataset.theme);
    show();
  });
  system.addEventListener("change", show);
  show();
  return made;
}
