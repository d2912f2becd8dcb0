// Everything over one axis of time: rows to compare, a lane per step, the transcript, the evidence; with one playhead.

import { makeCueStrip } from "./cues.js";
import { absence, chip, el, rove } from "./dom.js";
import { makeHeatmap } from "./heatmap.js";
import { makeEditable, makeSegment, place } from "./segments.js";
import { makeStrip, secondsAt } from "./strip.js";
import { formatTime, percent, tickSeconds } from "./time.js";

const ZOOMS = [1, 2, 4, 8, 16, 32, 64];

export function makeTimeline(state, parts) {
  const body = el("div", { class: "time-body" });
  const scroll = el("div", { class: "time-scroll" }, body);
  const axis = makeAxis(state);
  body.append(line("axis-line", null, axis));
  if (parts.has("lanes")) body.append(makeRows(state), makeLanes(state));
  if (parts.has("cues")) body.append(line("said-line", title("Said"), makeCueStrip(state)));
  if (parts.has("evidence")) {
    const { canvas, names } = makeHeatmap(state);
    body.append(line("evidence-line", el("div", { class: "heat-label" }, title("Evidence"), names), canvas));
  }
  const playhead = el("div", { class: "playhead", "aria-hidden": "true" });
  body.append(playhead);
  const point = () => {
    const x = state.sight.x(state.time);
    playhead.hidden = x < -1 || x > state.sight.width + 1;
    playhead.style.setProperty("--at", String(state.fraction(state.time)));
  };
  for (const event of ["time", "layout"]) state.on(event, point);

  const measure = () => {
    const gutter = axis.parentElement.offsetLeft;
    const width = scroll.clientWidth - gutter;
    const whole = width * state.zoom;
    const [offset, perSecond] = [state.model.offset, whole / state.duration];
    const left = offset + scroll.scrollLeft / perSecond;
    body.style.setProperty("width", `${gutter + whole}px`);
    state.sight = { width, left, right: left + width / perSecond, x: (time) => (time - left) * perSecond };
    state.emit("layout");
  };
  state.sight = { width: 0, left: state.model.offset, right: state.model.end, x: () => 0 };
  scroll.addEventListener("scroll", measure, { passive: true });
  const observer = new ResizeObserver(measure);
  observer.observe(scroll);

  const keepInSight = () => {
    const { width } = state.sight;
    const x = state.fraction(state.time) * width * state.zoom;
    const left = scroll.scrollLeft; // not that of the sight, which may lag behind
    if (x < left || x > left + 0.95 * width) scroll.scrollLeft = x - 0.2 * width;
  };
  state.on("seek", keepInSight);
  state.on("time", () => state.playing && keepInSight());
  const zoomed = (by) => {
    const middle = (state.sight.left + state.sight.right) / 2;
    const held = state.time >= state.sight.left && state.time <= state.sight.right ? state.time : middle;
    const share = (held - state.sight.left) / (state.sight.right - state.sight.left);
    state.zoom = ZOOMS[Math.min(Math.max(ZOOMS.indexOf(state.zoom) + by, 0), ZOOMS.length - 1)];
    measure();
    const whole = state.sight.width * state.zoom;
    scroll.scrollLeft = state.fraction(held) * whole - share * state.sight.width;
    measure();
    shown.textContent = `${state.zoom}×`;
  };
  const shown = el("output", { class: "zoom-value" }, `${state.zoom}×`);
  const button = (label, sign, by) => {
    const attributes = { type: "button", class: "button round", "aria-label": label, title: label };
    return el("button", { ...attributes, onclick: () => zoomed(by) }, sign);
  };
  const buttons = [button("Zoom out", "−", -1), shown, button("Zoom in", "+", 1)];
  const zoom = el("div", { class: "zoom", role: "group", "aria-label": "Zoom" }, buttons);
  return { scroll, zoom, measure, stop: () => observer.disconnect() };
}

function title(text) {
  return el("span", { class: "line-title" }, text);
}

function line(name, label, ...content) {
  const parts = [el("div", { class: "gutter" }, label), el("div", { class: "track" }, ...content)];
  return el("div", { class: `line ${name}` }, parts);
}

function makeAxis(state) {
  const { offset, end, clip_seconds: clip } = state.model;
  const axis = makeStrip(state, {
    name: "axis",
    height: 26,
    role: "slider",
    tabindex: 0,
    "aria-label": "Time",
    "aria-valuemin": offset,
    "aria-valuemax": end,
    draw(brush, { width, left, right, x }) {
      const step = tickSeconds((right - left) / width, 74);
      Object.assign(brush, { fillStyle: state.theme.dim, font: `11.5px ${state.theme.font}`, textBaseline: "middle" });
      for (let at = Math.ceil(left / step) * step; at <= right; at += step) {
        brush.fillRect(Math.round(x(at)), 19, 1, 7);
        const label = formatTime(at, step < 1 ? 1 : 0);
        brush.textAlign = x(at) < 16 ? "left" : x(at) > width - 20 ? "right" : "center";
        brush.fillText(label, x(at), 9);
      }
    },
  });
  const tell = () => {
    axis.setAttribute("aria-valuenow", state.time.toFixed(1));
    axis.setAttribute("aria-valuetext", formatTime(state.time));
  };
  state.on("time", tell);
  tell();
  const drag = (event) => {
    if (event.buttons & 1) state.seek(secondsAt(state, event));
  };
  axis.addEventListener("pointerdown", (event) => {
    axis.setPointerCapture(event.pointerId);
    drag(event);
  });
  axis.addEventListener("pointermove", drag);
  axis.addEventListener("keydown", (event) => {
    const big = Math.max(10 * clip, state.duration / 20);
    const ways = { ArrowLeft: -clip, ArrowDown: -clip, ArrowRight: clip, ArrowUp: clip, PageDown: -big, PageUp: big };
    const by = ways[event.key];
    const target = { Home: offset, End: end }[event.key] ?? (by && state.time + by);
    if (target === undefined) return;
    event.preventDefault();
    state.seek(target);
  });
  return axis;
}

// A click beside the segments goes to that time.
function seekable(state, track) {
  track.addEventListener("click", (event) => {
    if (event.target.closest(".segment")) return;
    const box = track.getBoundingClientRect();
    state.seek(state.model.offset + ((event.clientX - box.left) / box.width) * state.duration);
  });
}

function chooseOnClick(state, group) {
  group.addEventListener("click", (event) => {
    const button = event.target.closest(".segment");
    if (!button) return;
    const segment = button.segment;
    state.choose(segment.step, segment.start);
    if (button.dataset.index === undefined) return;
    const index = Number(button.dataset.index);
    state.tell("segment-select", { index, segment });
  });
}

// All steps in one row, for the result and each of those that it is compared with.
function makeRows(state) {
  const { model } = state;
  const truth = model.rows.find(({ name }) => /truth/i.test(name));
  const rows = [{ name: model.rows.length ? "Found" : "All steps", segments: model.segments }, ...model.rows];
  const label = "Results side by side; arrow keys move, Enter plays from there";
  const group = el("div", { class: "rows", role: "group", "aria-label": label });
  for (const row of rows) {
    const blocks = row.segments.map((segment) => makeSegment(state, segment, { of: row.name }));
    const right = truth && row !== truth ? `${percent(overlap(row.segments, truth.segments))} right` : null;
    const made = line("row", rowName(row.name, right), ...blocks);
    made.dataset.row = row.name;
    seekable(state, made.querySelector(".track"));
    group.append(made);
  }
  chooseOnClick(state, group);
  const ways = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };
  rove(group, ".segment", (button, key, all) => all[all.indexOf(button) + ways[key]]);
  return group;
}

function rowName(name, figure) {
  const text = el("span", { class: "row-text", title: name }, name);
  return el("span", { class: "row-name" }, text, figure && el("span", { class: "agreement" }, figure));
}

// The share of the true time of steps in which the right step is found.
function overlap(found, truth) {
  let [right, all] = [0, 0];
  for (const span of truth) {
    all += span.end - span.start;
    for (const other of found) {
      if (other.step === span.step) right += Math.max(0, Math.min(span.end, other.end) - Math.max(span.start, other.start));
    }
  }
  return all ? right / all : 0;
}

function makeLanes(state) {
  const { model } = state;
  const label = "Steps over time; arrow keys move between segments, Enter plays from there";
  const group = el("div", { class: "lanes", role: "group", "aria-label": label });
  for (const step of state.rows) {
    const { number, text } = model.steps[step];
    const words = [chip(model.steps[step]), el("span", { class: "lane-text" }, text)];
    const name = el("span", { class: "lane-name", "data-step": step, title: `${number}. ${text}` }, words);
    name.addEventListener("click", () => state.choose(step));
    const lane = line("lane", name);
    lane.dataset.step = step;
    const track = lane.querySelector(".track");
    model.segments.forEach((segment, index) => {
      if (segment.step !== step) return;
      const button = makeSegment(state, segment, { index });
      if (state.options.editable) makeEditable(state, button, index, track);
      track.append(button);
    });
    if (!track.firstChild) track.append(el("span", { class: "absent-note" }, absence(model.steps[step])));
    seekable(state, track);
    group.append(lane);
  }
  group.append(makeBackground(state));
  chooseOnClick(state, group);
  rove(group, ".segment", (button, key, all) => {
    const byTime = all.toSorted((a, b) => a.dataset.index - b.dataset.index);
    const by = { ArrowRight: 1, ArrowLeft: -1 }[key];
    if (by) return byTime[byTime.indexOf(button) + by];
    const lane = button.closest(".lane");
    const lanes = [...group.querySelectorAll(".lane:has(.segment)")];
    return lanes[lanes.indexOf(lane) + { ArrowDown: 1, ArrowUp: -1 }[key]]?.querySelector(".segment");
  });
  return group;
}

function makeBackground(state) {
  const { background } = state.model;
  const idle = background.reduce((sum, [start, end]) => sum + end - start, 0) / state.duration;
  const spans = background.map(([start, end]) => {
    const span = el("span", { class: "idle" });
    place(state, span, start, end);
    return span;
  });
  const made = line("idle-line", rowName("No step", percent(idle)), ...spans);
  seekable(state, made.querySelector(".track"));
  return made;
}
