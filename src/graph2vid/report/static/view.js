// A grounding to look at: the video, steps over time, the flow graph, the transcript; all of them move together.

import { makeCheck } from "./check.js";
import { makeTranscript } from "./cues.js";
import { el } from "./dom.js";
import { graphLegend, makeGraph } from "./graph.js";
import { makeNow, makePlayer } from "./player.js";
import { State, followPointer, highlight } from "./state.js";
import { readTheme } from "./strip.js";
import { makeTable } from "./table.js";
import { makeTimeline } from "./timeline.js";
import { makeTip } from "./tip.js";
import { makeTop } from "./top.js";

const PARTS = ["player", "lanes", "check", "cues", "evidence", "graph", "table"];

export function mountResult(element, model, options = {}) {
  const state = new State(element, model, { parts: PARTS, theme: true, ...options });
  element.classList.add("g2v");
  let stops = [];
  let screen = null;
  let shownVideo;

  function build() {
    for (const stop of stops) stop();
    state.forget();
    const focused = element.contains(document.activeElement) ? document.activeElement.dataset : null;
    const parts = new Set(state.options.parts);
    if (!state.model.cues.length) parts.delete("cues");
    if (!state.model.evidence) parts.delete("evidence");
    if (!state.model.check) parts.delete("check");
    const video = parts.has("player") ? (state.model.video?.url ?? null) : null;
    if (video !== shownVideo) {
      state.video = null;
      screen = video === null ? null : makePlayer(state); // kept as long as the video is the same: it goes on playing
      shownVideo = video;
    }
    state.theme = readTheme(element);
    const stage = el("div", { class: "stage" });
    const marked = highlight(state, stage);
    const timeline = makeTimeline(state, parts);
    const transcript = parts.has("cues") ? makeTranscript(state, marked) : null;
    stops = [timeline.stop, ...(transcript ? [transcript.stop] : [])];
    const lower = [
      transcript && panel("said", "Transcript", transcript.search, transcript.list),
      parts.has("table") && panel("times", "Times", null, makeTable(state)),
    ].filter(Boolean);
    const left = [
      parts.has("player") && panel("player", "Video", null, screen, makeNow(state)),
      panel("timeline", "Timeline", timeline.zoom, timeline.scroll, legend(parts)),
      parts.has("check") && panel("order-check", "Does the video follow the procedure?", null, makeCheck(state)),
      lower.length && el("div", { class: "lower" }, lower),
    ].filter(Boolean);
    stage.append(el("div", { class: "column" }, left));
    if (parts.has("graph")) {
      const graph = panel("flow", "Flow graph", note(state), makeGraph(state), graphLegend(state));
      stage.append(el("div", { class: "column beside" }, graph));
    }
    element.replaceChildren(...[state.options.theme ? makeTop(state) : null, stage, makeTip(state)].filter(Boolean));
    followPointer(state, stage);
    stage.addEventListener("keydown", (event) => event.key === "Escape" && state.select(null));
    marked();
    timeline.measure();
    if (focused?.index !== undefined) element.querySelector(`.segment[data-index="${focused.index}"]`)?.focus();
  }
  build();

  const repaint = () => {
    state.theme = readTheme(element);
    state.emit("theme");
  };
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const themes = new MutationObserver(repaint);
  themes.observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
  const printing = (value) => () => {
    state.printing = value;
    if (value) state.emit("print");
    state.emit("active");
    repaint();
  };
  const [before, after] = [printing(true), printing(false)];
  dark.addEventListener("change", repaint);
  window.addEventListener("beforeprint", before);
  window.addEventListener("afterprint", after);

  return {
    update(next) {
      state.show(next);
      build();
    },
    seek: (seconds) => state.seek(seconds),
    select: (step) => state.select(step),
    get time() {
      return state.time;
    },
    get video() {
      return state.video ?? null;
    },
    destroy() {
      for (const stop of stops) stop();
      themes.disconnect();
      dark.removeEventListener("change", repaint);
      window.removeEventListener("beforeprint", before);
      window.removeEventListener("afterprint", after);
      state.forget();
      element.replaceChildren();
      element.classList.remove("g2v");
    },
  };
}

function panel(name, title, tool, ...content) {
  const heading = el("h2", null, title);
  const head = el("div", { class: "panel-head" }, heading, tool);
  return el("section", { class: `panel ${name}`, "aria-label": title }, head, ...content);
}

function note(state) {
  const { order } = state.model;
  const asWritten = order.every((step, at) => at === 0 || order[at - 1] < step);
  return el("p", { class: "dim small" }, asWritten ? "done in the order written" : "numbers: as written; 1st, 2nd, …: as done");
}

function legend(parts) {
  const entry = (name, text) => el("li", null, el("span", { class: `key ${name}`, "aria-hidden": "true" }), text);
  return el(
    "ul",
    { class: "legend dim small" },
    entry("sure", "sure"),
    entry("unsure", "less sure"),
    entry("idle-key", "no step"),
    parts.has("evidence") ? entry("heat-key", "evidence, with the path found") : null,
  );
}
