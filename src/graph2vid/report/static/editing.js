// Correcting with the hand: borders and segments are dragged, new spans are drawn. "segment-drag" and "span-draw" tell of it.

import { el } from "./dom.js";
import { place } from "./segments.js";
import { formatSpan, formatTime, movedSpan, nearest } from "./time.js";

const LEAST = 4; // pixels that a press must move to be a drag
const SNAP = 7; // pixels
const TARGET = 24; // pixels of a grip

export function makeEditable(state, lanes) {
  const { model } = state;
  const limits = { first: model.offset, last: model.end, clip: model.clip_seconds };
  const targets = [
    ...model.cues.flatMap(([start, end]) => [{ at: start, name: "caption" }, { at: end, name: "caption" }]),
    ...model.segments.flatMap(({ start, end }, index) => [{ at: start, name: "segment", index }, { at: end, name: "segment", index }]),
  ];
  const handles = ["start", "end"].map((edge) => el("span", { class: `grip ${edge}`, "data-edge": edge, "aria-hidden": "true" }));
  const guide = el("div", { class: "snap-guide", hidden: true, "aria-hidden": "true" });
  lanes.append(guide);
  const buttonOf = (index) => lanes.querySelector(`.segment[data-index="${index}"]`);

  // The grips stand outside of a segment that is shorter than they are, but never beyond the video.
  const arm = () => {
    const button = state.picked === null ? null : buttonOf(state.picked);
    if (!button) for (const handle of handles) handle.remove();
    if (!button) return;
    const { start, end } = button.span ?? button.segment;
    const wide = (end - start) * state.sight.perSecond;
    const inside = Math.min(Math.max((wide - TARGET) / 2, -TARGET / 2), 8);
    const room = [start - model.offset, model.end - end].map((seconds) => seconds * state.sight.perSecond);
    handles.forEach((handle, at) => handle.style.setProperty("--inside", `${Math.max(inside, TARGET - room[at])}px`));
    if (handles[0].parentElement !== button) button.append(...handles);
  };
  state.on("pick", arm);
  state.on("layout", arm);

  /** @type {any} */
  let drag = null; // {edge, index or step, button, span, from, time}
  const secondsAt = (event) => {
    const box = drag.track.getBoundingClientRect();
    return model.offset + ((event.clientX - box.left) / box.width) * state.duration;
  };
  // The nearest caption or border of another segment, if it is near and Alt is not held.
  const snapped = (event, time) => {
    if (event.altKey) return { time, name: "" };
    const found = nearest(targets.filter(({ index }) => index === undefined || index !== drag.index), time, SNAP / state.sight.perSecond);
    return found ? { time: found.at, name: found.name } : { time, name: "" };
  };
  const show = (event, time, name) => {
    place(state, drag.button, drag.span.start, drag.span.end);
    drag.button.span = drag.span;
    guide.hidden = !name;
    if (name) guide.style.setProperty("--at", String(state.fraction(time)));
    const at = drag.edge === "end" ? drag.span.end : drag.span.start;
    state.tip(event, drag.edge === "move" || drag.edge === "draw" ? formatSpan(drag.span.start, drag.span.end) : formatTime(at), name ? `at the ${name}` : formatSpan(drag.span.start, drag.span.end));
    state.seek(Math.min(at, model.end - 0.001));
  };

  lanes.addEventListener("pointerdown", (event) => {
    state.dragged = false;
    if (event.button !== 0) return;
    const track = event.target.closest(".lane .track");
    if (!track) return;
    const grip = event.target.closest(".grip");
    const button = event.target.closest(".segment");
    const step = Number(track.closest(".lane").dataset.step);
    const isPicked = button && Number(button.dataset.index) === state.picked;
    const edge = grip?.dataset.edge ?? (isPicked ? "move" : button || event.pointerType === "touch" ? null : "draw");
    if (edge === null) return;
    drag = { edge, track, button, step, holder: grip ?? button ?? track, x: event.clientX, time: state.time, pointer: event.pointerId, begun: Boolean(grip), index: button ? Number(button.dataset.index) : null, span: button ? { start: button.segment.start, end: button.segment.end } : null };
    drag.grabbed = button && edge === "move" ? secondsAt(event) - button.segment.start : 0;
    drag.origin = secondsAt(event);
    if (grip) begin(event);
  });
  const begin = (event) => {
    event.preventDefault();
    drag.begun = true;
    state.dragging = true;
    drag.holder.setPointerCapture(event.pointerId);
    if (drag.edge !== "draw") return;
    const { colour } = model.steps[drag.step];
    drag.button = el("span", { class: "segment drawn", style: { "--colour": colour, "--sure": "1" } }, el("span", { class: "fill" }));
    drag.track.append(drag.button);
  };
  lanes.addEventListener("pointermove", (event) => {
    if (!drag || event.pointerId !== drag.pointer) return;
    if (!drag.begun && Math.abs(event.clientX - drag.x) < LEAST) return;
    if (!drag.begun) begin(event);
    const { time, name } = snapped(event, secondsAt(event) - drag.grabbed);
    if (drag.edge === "draw") {
      const [from, to] = [Math.min(drag.origin, time), Math.max(drag.origin, time)];
      const start = movedSpan({ start: from, end: limits.last }, "start", from, limits).start;
      drag.span = movedSpan({ start, end: start }, "end", to, limits);
    } else {
      drag.span = movedSpan(drag.span, drag.edge, time, limits);
    }
    show(event, time, name);
    if (drag.index !== null) state.tell("segment-drag", { index: drag.index, edge: drag.edge, ...drag.span, done: false });
  });

  const end = (isDone) => {
    if (!drag) return;
    const { edge, index, step, button, span, begun, time, pointer, holder } = drag;
    drag = null;
    if (!begun) return;
    state.dragging = false;
    state.dragged = true; // the click that follows is none, however late the button is let go
    if (holder.hasPointerCapture(pointer)) holder.releasePointerCapture(pointer);
    guide.hidden = true;
    state.untip();
    const was = index === null ? null : model.segments[index];
    const isMoved = span && (was === null || span.start !== was.start || span.end !== was.end);
    if (was === null) button?.remove();
    if (isDone && isMoved) {
      if (was === null) state.tell("span-draw", { step, ...span });
      else state.tell("segment-drag", { index, edge, ...span, done: true });
      return;
    }
    if (was) {
      button.span = null;
      place(state, button, was.start, was.end);
    }
    if (!isDone) state.seek(time);
  };
  lanes.addEventListener("pointerup", (event) => drag?.pointer === event.pointerId && end(true));
  lanes.addEventListener("pointercancel", (event) => drag?.pointer === event.pointerId && end(false));
  state.cancelDrag = () => {
    const isOne = Boolean(drag?.begun);
    if (isOne) end(false);
    return isOne;
  };

  // Moves a border of the chosen segment by so many clips, or to a time.
  state.nudge = (edge, { by = 0, to = null }) => {
    if (state.picked === null) return;
    const segment = model.segments[state.picked];
    const long = segment.end - segment.start;
    // A border set beyond the other one takes the segment along.
    const isBeyond = to !== null && (edge === "start" ? to >= segment.end : to <= segment.start);
    const span = isBeyond ? movedSpan(segment, "move", edge === "start" ? to : to - long, limits) : movedSpan(segment, edge, to ?? segment[edge] + by * limits.clip, limits);
    if (span.start === segment.start && span.end === segment.end) return;
    state.tell("segment-drag", { index: state.picked, edge, ...span, done: true });
  };
}
