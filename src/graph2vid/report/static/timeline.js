// Everything over one axis of time: an overview, rows to compare, a lane per step, the transcript, the evidence; with one
// playhead.

import { makeCueStrip } from "./cues.js";
import { absence, chip, el, rove, targetOf } from "./dom.js";
import { makeEditable } from "./editing.js";
import { makeFilmstrip } from "./filmstrip.js";
import { makeHeatmap } from "./heatmap.js";
import { aboutSegment, makeSegment, paintSegments, place } from "./segments.js";
import { makeStrip, secondsAt } from "./strip.js";
import { formatSpan, formatTime, lastAt, percent, scrollFor, tickSeconds } from "./time.js";

const LEAST_SECONDS = 5; // in sight at the largest zoom
const REACH = 12; // pixels beside a short segment that still are its own

export function makeTimeline(state, parts) {
  const body = el("div", { class: "time-body" });
  const scroll = el("div", { class: "time-scroll", tabindex: -1 }, body);
  const axis = makeAxis(state);
  body.append(line("axis-line", null, axis));
  if (state.options.film && state.model.video) body.append(line("film-line", title("Film"), makeFilmstrip(state)));
  let lanes = null;
  if (parts.has("lanes")) body.append(makeRows(state), (lanes = makeLanes(state)));
  if (parts.has("cues")) body.append(line("said-line", title("Said"), makeCueStrip(state)));
  if (parts.has("evidence")) {
    const { canvas, pick, names } = makeHeatmap(state);
    const head = el("div", null, title("Evidence"), pick);
    body.append(line("evidence-line", el("div", { class: "heat-label" }, head, names), canvas));
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
    state.sight = { width, gutter, left, right: left + width / perSecond, perSecond, x: (time) => (time - left) * perSecond };
    state.emit("layout");
  };
  state.sight = { width: 0, gutter: 0, left: state.model.offset, right: state.model.end, perSecond: 1, x: () => 0 };
  let [seenLeft, seenWidth] = [0, 0];
  const moved = () => {
    if (scroll.scrollLeft === seenLeft && scroll.clientWidth === seenWidth) return; // up and down changes nothing
    [seenLeft, seenWidth] = [scroll.scrollLeft, scroll.clientWidth];
    measure();
  };
  scroll.addEventListener("scroll", moved, { passive: true });
  const observer = new ResizeObserver(measure);
  observer.observe(scroll);

  const keepInSight = () => {
    if (state.dragging) return;
    const { width } = state.sight;
    const x = state.fraction(state.time) * width * state.zoom;
    const left = scroll.scrollLeft; // not that of the sight, which may lag behind
    if (x < left || x > left + 0.95 * width) scroll.scrollLeft = x - 0.2 * width;
  };
  state.on("seek", keepInSight);
  state.on("time", () => state.playing && keepInSight());
  state.scrollTo = (time) => {
    scroll.scrollLeft = state.fraction(time) * state.sight.width * state.zoom;
    moved();
  };
  state.on("pick", () => {
    const lane = lanes?.querySelector(`.lane[data-step="${state.selected}"]`);
    if (!lane || state.options.layout !== "workspace") return;
    if (scroll.scrollHeight > scroll.clientHeight) intoSight(scroll, lane, axis.offsetHeight);
    else lane.scrollIntoView({ block: "nearest" }); // the page scrolls, on a phone
  });

  const most = () => Math.max(64, state.duration / LEAST_SECONDS);
  // `held` stays where it is in sight: the playhead or the middle, or what lies under the pointer.
  state.zoomBy = (factor, held = null) => {
    const { left, right } = state.sight;
    const time = held ?? (state.time >= left && state.time <= right ? state.time : (left + right) / 2);
    const share = (time - left) / (right - left);
    state.zoom = Math.min(Math.max(state.zoom * factor, 1), most());
    measure();
    scroll.scrollLeft = scrollFor(state.fraction(time), state.sight.width * state.zoom, share, state.sight.width);
    measure();
    shown.textContent = zoomWords(state.zoom);
  };
  scroll.addEventListener(
    "wheel",
    (event) => {
      if (!event.ctrlKey && !event.metaKey) return; // a pinch on a touchpad comes as Ctrl and the wheel
      event.preventDefault();
      state.zoomBy(Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.004)), secondsUnder(state, scroll, event.clientX));
    },
    { passive: false },
  );
  pinching(state, scroll);
  const shown = el("output", { class: "zoom-value" }, zoomWords(state.zoom));
  const button = (label, sign, act, kind = "round") => el("button", { type: "button", class: `button ${kind}`, "aria-label": label, title: label, onclick: act }, sign);
  const zoom = el(
    "div",
    { class: "zoom", role: "group", "aria-label": "Zoom" },
    button("Zoom out", "−", () => state.zoomBy(0.5)),
    shown,
    button("Zoom in", "+", () => state.zoomBy(2)),
    button("Fit the whole video", "Fit", () => state.zoomBy(0), "small"),
  );
  if (state.options.editable && lanes) makeEditable(state, lanes);
  return { scroll, zoom, overview: makeOverview(state), measure, stop: () => observer.disconnect() };
}

const zoomWords = (zoom) => `${zoom >= 10 || Number.isInteger(zoom) ? Math.round(zoom) : zoom.toFixed(1)}×`;

function secondsUnder(state, scroll, clientX) {
  const x = clientX - scroll.getBoundingClientRect().left - state.sight.gutter;
  return state.sight.left + Math.min(Math.max(x, 0), state.sight.width) / state.sight.perSecond;
}

// Two fingers zoom.
function pinching(state, scroll) {
  let apart = null;
  const distance = ([one, other]) => Math.max(Math.hypot(one.clientX - other.clientX, one.clientY - other.clientY), 1);
  scroll.addEventListener("touchstart", (event) => (apart = event.touches.length === 2 ? distance(event.touches) : null), { passive: true });
  scroll.addEventListener(
    "touchmove",
    (event) => {
      if (event.touches.length !== 2 || apart === null) return;
      event.preventDefault();
      const now = distance(event.touches);
      state.zoomBy(now / apart, secondsUnder(state, scroll, (event.touches[0].clientX + event.touches[1].clientX) / 2));
      apart = now;
    },
    { passive: false },
  );
}

// Scrolls a box up or down until an element of it is seen below what is held at its top.
function intoSight(box, element, held) {
  const [outer, inner] = [box.getBoundingClientRect(), element.getBoundingClientRect()];
  if (inner.top < outer.top + held || inner.bottom > outer.bottom) box.scrollTop += inner.top - outer.top - held - (outer.height - held - inner.height) / 2;
}

function title(text) {
  return el("span", { class: "line-title" }, text);
}

function line(name, label, ...content) {
  const parts = [el("div", { class: "gutter" }, label), el("div", { class: "track" }, ...content)];
  return el("div", { class: `line ${name}` }, parts);
}

// The whole video at a glance, with a frame around what is in sight: drag it, or click elsewhere.
function makeOverview(state) {
  const height = 22;
  const canvas = makeStrip(state, {
    name: "overview",
    height,
    also: ["time"],
    role: "img",
    "aria-label": "The whole video; the frame is what is in sight",
    draw(brush, { width, left, right }) {
      const x = (time) => state.fraction(time) * width;
      paintSegments(state, brush, state.model.segments, { x, width, top: 5, height: height - 10 });
      for (const { start } of marksOf(state.model)) {
        brush.fillStyle = state.theme.warn;
        brush.fillRect(x(start) - 1.5, 0, 3, 4);
      }
      brush.fillStyle = state.theme.accent;
      brush.fillRect(x(state.time) - 1, 0, 2, height);
      if (state.zoom > 1) {
        brush.strokeStyle = state.theme.accent;
        brush.lineWidth = 2;
        brush.strokeRect(x(left) + 1, 1, Math.max(x(right) - x(left) - 2, 4), height - 2);
      }
    },
  });
  const go = (event) => {
    if (!(event.buttons & 1)) return;
    const box = canvas.getBoundingClientRect();
    const time = state.model.offset + ((event.clientX - box.left) / box.width) * state.duration;
    if (state.zoom > 1) state.scrollTo(time - (state.sight.right - state.sight.left) / 2);
    else state.seek(time);
  };
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    go(event);
  });
  canvas.addEventListener("pointermove", go);
  return el("div", { class: "line overview-line" }, el("div", { class: "gutter" }, title("Whole video")), el("div", { class: "track" }, canvas));
}

function makeAxis(state) {
  const { offset, end, clip_seconds: clip } = state.model;
  const axis = makeStrip(state, {
    name: "axis",
    height: 26,
    calm: true,
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
    if (event.shiftKey || event.altKey || event.ctrlKey || event.metaKey) return;
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

// A click on a track chooses the segment that is meant: the one that is hit, or a short one beside it; else it goes there.
function chooseOnClick(state, group) {
  group.addEventListener("click", (event) => {
    const track = event.target.closest(".track");
    if (!track || (state.dragged && event.detail)) return; // keys click without pressing
    const button = event.target.closest(".segment") ?? closest(track, event.clientX);
    state.untip();
    if (button) {
      state.select(button.segment.step, Number(button.dataset.index));
      state.seek(button.segment.start);
      return;
    }
    const box = track.getBoundingClientRect();
    state.seek(state.model.offset + ((event.clientX - box.left) / box.width) * state.duration);
  });
}

function closest(track, x) {
  let [best, far] = [null, REACH];
  for (const button of track.querySelectorAll(".segment")) {
    const box = button.getBoundingClientRect();
    const away = Math.max(box.left - x, x - box.right, 0);
    if (away <= far) [best, far] = [button, away];
  }
  return best;
}

// All steps in one row, for the result and each of those that it is compared with.
function makeRows(state) {
  const { model } = state;
  if (!model.rows.length) return el("div", { class: "rows", hidden: true });
  const truth = model.rows.find(({ name }) => /truth/i.test(name));
  const rows = [{ name: "Found", segments: model.segments }, ...model.rows];
  const group = el("div", { class: "rows", role: "group", "aria-label": "Results side by side" });
  for (const row of rows) {
    const right = truth && row !== truth ? `${percent(overlap(row.segments, truth.segments))} right` : null;
    const made = line("row", rowName(row.name, right), makeRowStrip(state, row));
    made.dataset.row = row.name;
    group.append(made);
  }
  return group;
}

function makeRowStrip(state, { name, segments }) {
  const starts = segments.map(({ start }) => start);
  const height = 26;
  const canvas = makeStrip(state, {
    name: "row-strip",
    height,
    role: "img",
    "aria-label": `${name}: ${segments.map((one) => `step ${state.model.steps[one.step].number} ${formatSpan(one.start, one.end)}`).slice(0, 100).join(", ")}`,
    draw: (brush, { x, width }) => paintSegments(state, brush, segments, { x, width, top: 3, height: height - 6, numbers: true }),
  });
  const at = (event) => {
    const time = secondsAt(state, event);
    const segment = segments[lastAt(starts, time)];
    return segment && time < segment.end ? segment : null;
  };
  canvas.addEventListener("pointermove", (event) => {
    const segment = at(event);
    state.hover(segment && segment.step);
    if (segment) state.tip(event, ...aboutSegment(state, segment, segments === state.model.segments));
    else state.untip();
  });
  canvas.addEventListener("pointerleave", () => {
    state.hover(null);
    state.untip();
  });
  canvas.addEventListener("click", (event) => {
    const segment = at(event);
    if (segment) state.choose(segment.step, segment.start);
    else state.seek(secondsAt(state, event));
  });
  return canvas;
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

// What the check of the order found, with the time where it is to be seen.
export function marksOf({ check }) {
  return check ? [...check.deviations, ...check.unsure].filter(({ start }) => start !== null) : [];
}

function makeLanes(state) {
  const { model } = state;
  const label = "Steps over time; up and down go to the segment before and after, Enter plays from there";
  const group = el("div", { class: "lanes", role: "group", "aria-label": label });
  const ofStep = new Map(state.rows.map((step) => [step, []]));
  model.segments.forEach((segment, index) => ofStep.get(segment.step)?.push([segment, index]));
  const marks = marksOf(model);
  for (const step of state.rows) {
    const { number, text } = model.steps[step];
    const words = [chip(model.steps[step]), el("span", { class: "lane-text" }, text)];
    const name = el("span", { class: "lane-name", "data-step": step, title: `${number ?? "–"}. ${text}` }, words);
    name.addEventListener("click", () => state.choose(step));
    const lane = line("lane", name);
    lane.dataset.step = step;
    const track = lane.querySelector(".track");
    track.append(...ofStep.get(step).map(([segment, index]) => makeSegment(state, segment, index)));
    if (!track.firstChild) track.append(el("span", { class: "absent-note" }, absence(model.steps[step])));
    for (const one of marks) {
      if (one.step !== step) continue;
      const mark = el("span", { class: "check-mark", title: one.words });
      place(state, mark, one.start, one.end);
      track.append(mark);
    }
    group.append(lane);
  }
  group.append(makeBackground(state));
  chooseOnClick(state, group);
  group.addEventListener("pointermove", (event) => {
    const button = /** @type {import("./segments.js").SegmentButton} */ (targetOf(event).closest(".segment"));
    if (state.dragging) return;
    if (button) state.tip(event, ...aboutSegment(state, button.segment));
    else state.untip();
  });
  group.addEventListener("pointerleave", () => state.dragging || state.untip());
  const show = () => {
    for (const old of group.querySelectorAll(".segment.picked")) old.classList.remove("picked");
    if (state.picked !== null) group.querySelector(`.segment[data-index="${state.picked}"]`)?.classList.add("picked");
  };
  state.on("pick", show);
  show();
  rove(group, ".segment", () => null); // up and down are keys of the whole view
  return group;
}

function makeBackground(state) {
  const { background } = state.model;
  const idle = background.reduce((sum, [start, end]) => sum + end - start, 0) / state.duration;
  const strip = makeStrip(state, {
    name: "idle-strip",
    height: 26,
    role: "img",
    "aria-label": `No step is shown in ${percent(idle)} of the video`,
    draw(brush, { x, width }) {
      brush.strokeStyle = state.theme.dim;
      brush.globalAlpha = 0.6;
      brush.beginPath();
      for (const [start, end] of background) {
        const [from, to] = [Math.max(x(start), 0), Math.min(x(end), width)];
        for (let at = from; at < to; at += 6) {
          brush.moveTo(at, 18);
          brush.lineTo(Math.min(at + 8, to), 8);
        }
      }
      brush.stroke();
      brush.globalAlpha = 1;
    },
  });
  return line("idle-line", rowName("No step", percent(idle)), strip);
}
