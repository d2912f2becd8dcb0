// A grounding to look at: the video, steps over time, the flow graph, the transcript; all of them move together.

import { makeBoxes } from "./boxes.js";
import { makeTranscript } from "./cues.js";
import { el } from "./dom.js";
import { graphLegend, makeGraph } from "./graph.js";
import { bindKeys, showKeys, viewKeys } from "./keys.js";
import { isFolded, makeBorder, makeTabs, remember } from "./panes.js";
import { makeNow, makePlayer, makeTransport } from "./player.js";
import { hasReview, makeReview, reviewCount } from "./review.js";
import { State, followPointer, highlight } from "./state.js";
import { readTheme } from "./strip.js";
import { makeTable } from "./table.js";
import { makeTimeline, marksOf } from "./timeline.js";
import { makeTip } from "./tip.js";
import { makeTop } from "./top.js";

const PARTS = ["player", "lanes", "review", "cues", "evidence", "graph", "table"];

// Options: `parts` to show; `theme`: with a head; `editable`; `layout`: "page", or "workspace" that fills its element;
// `side`: a first tab of the workspace, as [title, element]; `keys(state)`: more keys, as in keys.js.
export function mountResult(element, model, options = {}) {
  const state = new State(element, model, { parts: PARTS, theme: true, layout: "page", ...options });
  state.transport = makeTransport(state);
  element.classList.add("g2v");
  element.classList.toggle("workspace", state.options.layout === "workspace");
  let stops = [];
  let screen = null;
  let shownVideo;
  let tab = "side";
  let tabs = null;
  let scrolled = [0, 0];

  function build() {
    for (const stop of stops) stop();
    state.forget();
    const focused = element.contains(document.activeElement) ? /** @type {HTMLElement} */ (document.activeElement).dataset : null;
    const parts = new Set(state.options.parts);
    if (!state.model.cues.length) parts.delete("cues");
    if (!state.model.evidence) parts.delete("evidence");
    const video = parts.has("player") ? (state.model.video?.url ?? null) : null;
    if (video !== shownVideo) {
      state.video = state.showFrame = null;
      screen = video === null ? null : makePlayer(state); // kept as long as the video is the same: it goes on playing
      shownVideo = video;
    }
    screen?.querySelector(".boxes")?.remove();
    if (state.video) screen.append(makeBoxes(state));
    state.theme = readTheme(element);
    const isWork = state.options.layout === "workspace";
    const stage = el("div", { class: isWork ? "work" : "stage" });
    const marked = highlight(state, stage);
    const timeline = makeTimeline(state, parts);
    const transcript = parts.has("cues") ? makeTranscript(state, marked) : null;
    const listed = () => [...viewKeys(state), ...(state.options.keys?.(state) ?? [])];
    stops = [timeline.stop, bindKeys(listed), ...(transcript ? [transcript.stop] : [])];
    const made = { parts, timeline, transcript, listed, screen };
    stage.append(...(isWork ? workspace(made) : columns(made)));
    element.replaceChildren(...[state.options.theme ? makeTop(state) : null, stage, makeTip(state)].filter(Boolean));
    followPointer(state, stage);
    marked();
    timeline.measure();
    state.emit("pick");
    timeline.scroll.scrollTo(scrolled[0], scrolled[1]);
    timeline.scroll.addEventListener("scroll", () => (scrolled = [timeline.scroll.scrollLeft, timeline.scroll.scrollTop]), { passive: true });
    if (focused?.index !== undefined) element.querySelector(`.segment[data-index="${focused.index}"]`)?.focus({ preventScroll: true });
  }

  function columns({ parts, timeline, transcript, listed }) {
    const lower = [
      transcript && panel("said", "Transcript", transcript.search, transcript.list),
      parts.has("table") && panel("times", "Times", null, makeTable(state)),
    ].filter(Boolean);
    const tools = el("div", { class: "panel-tools" }, timeline.zoom, keysButton(listed));
    const left = [
      parts.has("player") && panel("player", "Video", null, screen, makeNow(state)),
      panel("timeline", "Timeline", tools, timeline.overview, timeline.scroll, legend(state, parts)),
      parts.has("review") && hasReview(state.model) && panel("to-review", "What to review", null, makeReview(state)),
      lower.length && el("div", { class: "lower" }, lower),
    ].filter(Boolean);
    const column = el("div", { class: "column" }, left);
    if (!parts.has("graph")) return [column];
    const graph = makeGraph(state);
    return [column, el("div", { class: "column beside" }, panel("flow", "Flow graph", graph.tools, note(state), graph.box, graphLegend(state)))];
  }

  // Video, what is known, and the graph above; the timeline below, as high as is left.
  function workspace({ parts, timeline, transcript, listed }) {
    const top = el("div", { class: "work-top" });
    const entries = [
      state.options.side && ["side", ...state.options.side],
      ["review", "Review", makeReview(state), reviewCount(state.model)],
      transcript && ["said", "Transcript", [transcript.search, transcript.list]],
      parts.has("table") && ["times", "Times", makeTable(state)],
    ].filter(Boolean);
    tabs = makeTabs("What is known", entries, tab, (key) => {
      tab = key;
      state.emit("tab");
    });
    const wide = makeBorder(top, "player-width", { label: "Width of the video", side: "left", least: 20, most: 60 });
    top.append(panel("player", "Video", null, screen ?? el("p", { class: "notice" }, "There is no video to play: captions alone were grounded."), makeNow(state)), wide, el("section", { class: "panel side", "aria-label": "What is known" }, tabs.element));
    if (parts.has("graph")) {
      const graph = makeGraph(state);
      const fold = el("button", { type: "button", class: "button small fold" });
      const flow = panel("flow", "Flow graph", graph.tools, graph.box);
      const border = makeBorder(top, "graph-width", { label: "Width of the flow graph", side: "right", usual: 32, least: 14, most: 60 });
      const show = (isOpen) => {
        fold.textContent = isOpen ? "Hide the graph" : "Show the graph";
        border.hidden = flow.hidden = !isOpen;
        remember("folded-graph", isOpen ? "no" : "yes");
      };
      fold.addEventListener("click", () => show(flow.hidden));
      top.append(border, flow);
      show(!isFolded("graph"));
      timeline.zoom.append(fold);
    }
    const tools = el("div", { class: "panel-tools" }, legend(state, parts), timeline.zoom, keysButton(listed));
    const work = el("div", { class: "work-rows" });
    const border = makeBorder(work, "top-height", { label: "Height of the video", side: "top", usual: 44, least: 25, most: 78 });
    work.append(top, border, panel("timeline", "Timeline", tools, timeline.overview, timeline.scroll));
    return [work];
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
    state,
    update(next) {
      state.show(next);
      build();
    },
    seek: (seconds) => state.seek(seconds),
    select: (step) => state.select(step),
    showTab: (key) => tabs?.show(key),
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
      element.classList.remove("g2v", "workspace");
    },
  };
}

function panel(name, title, tool, ...content) {
  const heading = el("h2", null, title);
  const head = el("div", { class: "panel-head" }, heading, tool);
  return el("section", { class: `panel ${name}`, "aria-label": title }, head, ...content);
}

const keysButton = (listed) => el("button", { type: "button", class: "button round", "aria-label": "Show the keys", title: "Show the keys (?)", onclick: () => showKeys(listed()) }, "?");

function note(state) {
  const { order, count } = state.model;
  const asWritten = order.every((step, at) => at === 0 || order[at - 1] < step);
  const open = count.doubtful + state.model.elsewhere.length; // what may have been done in another order
  const certain = open ? `, as far as it is certain: ${open === 1 ? "1 step" : `${open} steps`} may lie elsewhere` : "";
  return el("p", { class: "dim small graph-note" }, asWritten ? `done in the order written${certain}` : "numbers: as written; 1st, 2nd, …: as done");
}

function legend(state, parts) {
  const entry = (name, text) => el("li", null, el("span", { class: `key ${name}`, "aria-hidden": "true" }), text);
  return el(
    "ul",
    { class: "legend dim small" },
    entry("sure", "sure"),
    entry("unsure", "less sure"),
    entry("doubtful-key", "doubtful"),
    entry("idle-key", "no step"),
    marksOf(state.model).length ? entry("mark-key", "not as the procedure says") : null,
    parts.has("evidence") ? entry("heat-key", "evidence, with the path found") : null,
  );
}
