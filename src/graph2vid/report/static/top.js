// The head of a report: what this is, in a few facts, and the switch between light and dark.

import { el, icon } from "./dom.js";
import { formatTime, percent } from "./time.js";

const MOON = "M20 14.5A8.5 8.5 0 0 1 9.5 4 8.5 8.5 0 1 0 20 14.5z";
const SUN = "M12 7a5 5 0 1 1 0 10 5 5 0 0 1 0-10zM11 1h2v4h-2zM11 19h2v4h-2zM1 11h4v2H1zM19 11h4v2h-4zM4.2 5.6l1.4-1.4 2.8 2.8L7 8.4zM15.6 17l1.4-1.4 2.8 2.8-1.4 1.4zM15.6 7l2.8-2.8 1.4 1.4L17 8.4zM4.2 18.4 7 15.6 8.4 17l-2.8 2.8z";
const KEY = "graph2vid-theme";

export function makeTop(state) {
  const { model } = state;
  const facts = factsOf(state).map((text) => el("li", null, text));
  return el(
    "header",
    { class: "top" },
    el(
      "div",
      { class: "top-words" },
      el("p", { class: "brand" }, "graph2vid"),
      el("h1", null, model.title || "When each step happens"),
      el("ul", { class: "facts" }, facts),
      warning(model),
    ),
    themeSwitch(),
  );
}

function factsOf(state) {
  const { model } = state;
  const { order, segments, facts, count, conflicts } = model;
  const found = [count.words, `${formatTime(model.end - model.offset, 0)} of video`];
  const known = order.map((step) => state.confidenceOf(step)).filter((sure) => sure !== null);
  if (known.length) found.push(`${percent(known.reduce((sum, sure) => sum + sure, 0) / known.length)} sure on average`);
  if (facts.uncalibrated) found.push("confidence uncalibrated");
  if (segments.length && order.some((step, at) => at > 0 && order[at - 1] > step)) found.push("another order than written");
  if (conflicts.length) found.push(conflicts.length === 1 ? "a link fights the evidence" : `${conflicts.length} links fight the evidence`);
  const source = facts.narration?.source;
  if (source) found.push(source === "given" ? "captions given" : `transcript: ${source}`);
  return found;
}

function warning(model) {
  if (!model.facts.unlikely) return null;
  return el("p", { class: "warning" }, "The transcript hardly goes with this procedure: is it the right one for this video?");
}

function stored() {
  try {
    return localStorage.getItem(KEY);
  } catch {
    return null; // a page from disk may keep nothing
  }
}

export function themeSwitch() {
  const root = document.documentElement;
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
  const button = el("button", { type: "button", class: "button theme-switch" });
  // It says what a click does.
  const show = () => {
    const other = isDark() ? "Light" : "Dark";
    button.replaceChildren(icon(isDark() ? SUN : MOON), el("span", null, other));
    button.setAttribute("aria-label", `${other} colours`);
    button.title = `Switch to ${other.toLowerCase()} colours`;
  };
  if (["light", "dark"].includes(stored())) root.dataset.theme = stored();
  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    try {
      localStorage.setItem(KEY, root.dataset.theme);
    } catch {
      // nothing is kept, and nothing is lost by that
    }
    show();
  });
  system.addEventListener("change", show);
  show();
  return button;
}
