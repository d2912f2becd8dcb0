// Segments as buttons on a track; where a result may be corrected, with grips on both borders.

import { el, ordinal } from "./dom.js";
import { formatMargin, formatSpan, percent, spokenSpan } from "./time.js";

export function place(state, button, start, end) {
  button.style.setProperty("left", `${100 * state.fraction(start)}%`);
  button.style.setProperty("width", `${(100 * (end - start)) / state.duration}%`);
}

export function makeSegment(state, segment, attributes) {
  const step = state.model.steps[segment.step];
  const sure = segment.confidence;
  const known = sure === null ? [] : [`${percent(sure)} sure`];
  if (segment.uncalibrated) known.push("uncalibrated");
  if (segment.margin !== null) known.push(`margin ${formatMargin(segment.margin)}`);
  if (segment.why) known.push(`doubtful: ${segment.why}`);
  const label = [`Step ${step.number}`, step.text, spokenSpan(segment.start, segment.end), ...known].join(", ");
  const button = el(
    "button",
    {
      type: "button",
      class: segment.why ? "segment doubtful" : "segment",
      "data-step": segment.step,
      "aria-label": attributes.of ? `${attributes.of}: ${label}` : label,
      "data-index": attributes.index,
      style: { "--colour": step.colour, "--ink": step.ink, "--sure": String(sure ?? 1) },
      tabindex: -1,
    },
    el("span", { class: "fill" }),
    el("span", { class: "number" }, step.number),
  );
  place(state, button, segment.start, segment.end);
  button.segment = segment;
  const order = step.place && !attributes.of ? [`${ordinal(step.place)} in the video`] : [];
  const lines = [`${step.number}. ${step.text}`, [...order, formatSpan(segment.start, segment.end), ...known].join(", ")];
  button.addEventListener("pointermove", (event) => state.tip(event, ...lines));
  button.addEventListener("pointerleave", () => state.untip());
  return button;
}

// Grips on the borders: "segment-drag" tells of every move, and of the end of it.
export function makeEditable(state, button, index, track) {
  const { segments, clip_seconds: clip, offset, end: last } = state.model;
  const segment = segments[index];
  const span = { start: segment.start, end: segment.end };
  const snapped = (time) => offset + Math.round((time - offset) / clip) * clip;
  const move = (edge, time) => {
    const [least, most] = edge === "start" ? [offset, span.end - clip] : [span.start + clip, last];
    span[edge] = Math.min(Math.max(snapped(time), least), most);
    place(state, button, span.start, span.end);
  };
  const tell = (edge, done) => state.tell("segment-drag", { index, edge, ...span, done });
  for (const edge of ["start", "end"]) {
    const grip = el("span", { class: `grip ${edge}`, "aria-hidden": "true" });
    grip.addEventListener("pointerdown", (event) => {
      event.preventDefault();
      event.stopPropagation();
      grip.setPointerCapture(event.pointerId);
    });
    grip.addEventListener("pointermove", (event) => {
      if (!grip.hasPointerCapture(event.pointerId)) return;
      const box = track.getBoundingClientRect();
      move(edge, offset + ((event.clientX - box.left) / box.width) * state.duration);
      state.tip(event, formatSpan(span.start, span.end));
      tell(edge, false);
    });
    grip.addEventListener("lostpointercapture", () => {
      state.untip();
      if (span[edge] !== segment[edge]) tell(edge, true);
    });
    grip.addEventListener("click", (event) => event.stopPropagation());
    button.append(grip);
  }
  button.addEventListener("keydown", (event) => {
    const by = { ArrowLeft: -clip, ArrowRight: clip }[event.key];
    if (!by || event.shiftKey === event.altKey) return;
    event.preventDefault();
    const edge = event.shiftKey ? "start" : "end";
    move(edge, span[edge] + by);
    tell(edge, true);
  });
}
