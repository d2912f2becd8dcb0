// Segments: as buttons on the lane of their step, and as blocks that are painted where there are many in one row.

import { el, ordinal } from "./dom.js";
import { formatMargin, formatSpan, percent, spokenSpan } from "./time.js";

export function place(state, element, start, end) {
  element.style.setProperty("left", `${100 * state.fraction(start)}%`);
  element.style.setProperty("width", `${(100 * (end - start)) / state.duration}%`);
}

export function aboutSegment(state, segment, isOwn = true) {
  const step = state.model.steps[segment.step];
  const known = segment.confidence === null ? [] : [`${percent(segment.confidence)} sure`];
  if (segment.uncalibrated) known.push("uncalibrated");
  if (segment.margin !== null) known.push(`margin ${formatMargin(segment.margin)}`);
  if (segment.kept) known.push("kept by you");
  if (segment.why) known.push(`doubtful: ${segment.why}`);
  const order = step.place && isOwn ? [`${ordinal(step.place)} in the video`] : [];
  return [`${step.number ?? "–"}. ${step.text}`, [...order, formatSpan(segment.start, segment.end), ...known].join(", ")];
}

/** @typedef {HTMLButtonElement & {segment: import("./state.js").Segment, span?: {start: number, end: number}}} SegmentButton */

export function makeSegment(state, segment, index) {
  const step = state.model.steps[segment.step];
  const [, known] = aboutSegment(state, segment, false);
  const rest = known.split(", ").slice(1);
  const label = [`Step ${step.number ?? "–"}`, step.text, spokenSpan(segment.start, segment.end), ...rest].join(", ");
  const made = el(
    "button",
    {
      type: "button",
      class: `segment${segment.why ? " doubtful" : ""}${segment.kept ? " kept" : ""}`,
      "data-step": segment.step,
      "aria-label": label,
      "data-index": index,
      style: { "--colour": step.colour, "--ink": step.ink, "--sure": String(segment.confidence ?? 1) },
      tabindex: -1,
    },
    el("span", { class: "fill" }),
  );
  place(state, made, segment.start, segment.end);
  /** @type {SegmentButton} */
  const button = Object.assign(made, { segment });
  return button;
}

// Paints the segments of a row into a strip; those that fall on the same pixels are painted once.
export function paintSegments(state, brush, segments, { x, width, top, height, numbers = false }) {
  const { steps } = state.model;
  let [painted, last] = [-1, null];
  for (const segment of segments) {
    const left = x(segment.start);
    const right = Math.max(x(segment.end), left + 2);
    if (right < 0 || left > width) continue;
    if (right <= painted && segment.step !== state.active && last === segment.step) continue;
    [painted, last] = [right, segment.step];
    const { colour, ink, number } = steps[segment.step];
    const sure = segment.why ? 0.22 : 0.25 + 0.75 * (segment.confidence ?? 1);
    brush.globalAlpha = sure * (state.active === null || state.active === segment.step ? 1 : 0.45);
    brush.fillStyle = colour;
    brush.fillRect(left, top, right - left - (right - left > 4 ? 1 : 0), height);
    brush.globalAlpha = state.active === null || state.active === segment.step ? 1 : 0.45;
    if (right - left > 5) {
      brush.strokeStyle = segment.step === state.active ? state.theme.text : colour;
      brush.lineWidth = segment.step === state.active ? 2 : 1.5;
      brush.setLineDash(segment.why ? [3, 2] : []);
      brush.strokeRect(left + 0.75, top + 0.75, right - left - 2.5, height - 1.5);
    }
    if (numbers && right - left > 24) {
      brush.fillStyle = colour;
      brush.fillRect(left + 3, top + height / 2 - 8, 20, 16);
      Object.assign(brush, { fillStyle: ink, font: `700 11px ${state.theme.font}`, textAlign: "center", textBaseline: "middle" });
      brush.fillText(String(number ?? "–"), left + 13, top + height / 2 + 0.5);
    }
  }
  brush.setLineDash([]);
  brush.globalAlpha = 1;
}
