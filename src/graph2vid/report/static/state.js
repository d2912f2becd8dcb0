// What all parts of a view share: the result, the time, the step that is looked at; and who wants to know of changes.

import { lastAt } from "./time.js";

/**
 * What `graph2vid.report.view_model` makes: steps are indices, times are seconds.
 * @typedef {{step: number, start: number, end: number, confidence: number | null, margin: number | "inf" | null, uncalibrated: boolean, why: string, kept?: boolean}} Segment
 * @typedef {{id: string, number: number | null, text: string, colour: string, ink: string, place: number | null, after: number[], absent: number | null, doubtful: boolean, optional: boolean, instead_of: number[], untaken: boolean}} Step
 * @typedef {{kind: string, step: number, start: number | null, end: number | null, certainty: number, words: string}} Deviation
 * @typedef {{format: string, version: number, graph2vid: string, title: string, clip_seconds: number, offset: number, end: number, video: {url: string, name: string} | null, steps: Step[], order: number[], not_shown: number[], segments: Segment[], background: [number, number][], graph: any, cues: [number, number, string, string?, number[]?][], evidence: any, rows: {name: string, segments: Segment[]}[], count: any, facts: any, conflicts: any[], elsewhere: any[], check: {follows: boolean, verdict: string, deviations: Deviation[], unsure: Deviation[]} | null}} Model
 * The stretch of time that is in sight, and where a second lies in it.
 * @typedef {{width: number, gutter: number, left: number, right: number, perSecond: number, x: (seconds: number) => number}} Sight
 */

export class State {
  /**
   * @param {HTMLElement} element
   * @param {Model} model
   * @param {any} options
   */
  constructor(element, model, options) {
    /** @type {HTMLVideoElement | null} */
    this.video = null;
    /** @type {((seconds: number) => void) | null} */
    this.showFrame = null;
    /** @type {number | null} */
    this.frame = null; // seconds, as soon as it is known
    /** @type {any} */
    this.transport = null;
    /** @type {Record<string, string>} */
    this.theme = {};
    /** @type {Sight} */
    this.sight = { width: 0, gutter: 0, left: model.offset, right: model.end, perSecond: 1, x: () => 0 };
    /** @type {(words: string) => void} */
    this.say = () => {};
    /** @type {(event: PointerEvent | MouseEvent, title: string, more?: string) => void} */
    this.tip = () => {};
    this.untip = () => {};
    /** @type {(factor: number, held?: number | null) => void} */
    this.zoomBy = () => {};
    /** @type {(time: number) => void} */
    this.scrollTo = () => {};
    /** @type {(edge: "start" | "end", move: {by?: number, to?: number}) => void} */
    this.nudge = () => {};
    this.dragged = false; // until the next press: the click that follows is none
    this.element = element;
    this.options = options;
    this.time = model.offset;
    this.zoom = 1;
    this.playing = false;
    this.printing = false;
    this.selected = null; // a step
    this.picked = null; // the index of its segment that was chosen
    this.dragging = false; // a border, a segment or a new span
    this.hovered = null;
    this.listeners = new Map();
    this.show(model);
  }

  /** @param {Model} model */
  show(model) {
    this.model = model;
    this.duration = Math.max(model.end - model.offset, 1e-9);
    this.starts = model.segments.map((segment) => segment.start);
    this.rows = [...model.order, ...model.not_shown]; // steps from top to bottom
    if (this.selected !== null && this.selected >= model.steps.length) this.selected = null;
    const picked = model.segments[this.picked ?? -1];
    if (picked?.step !== this.selected) this.picked = this.selected === null ? null : this.indexOf(this.selected, this.time);
    this.hovered = null;
  }

  // Listeners of one build of the parts; `forget` ends them all before the next.
  on(name, listener) {
    if (!this.listeners.has(name)) this.listeners.set(name, new Set());
    this.listeners.get(name).add(listener);
  }

  emit(name) {
    for (const listener of this.listeners.get(name) ?? []) listener();
  }

  forget() {
    this.listeners.clear();
  }

  tell(name, detail) {
    this.element.dispatchEvent(new CustomEvent(name, { detail, bubbles: true }));
  }

  get active() {
    return this.printing ? null : (this.hovered ?? this.selected);
  }

  fraction(time) {
    return (time - this.model.offset) / this.duration;
  }

  segmentAt(time) {
    const index = lastAt(this.starts, time);
    return index >= 0 && time < this.model.segments[index].end ? index : -1;
  }

  stepAt(time) {
    const index = this.segmentAt(time);
    return index < 0 ? null : this.model.segments[index].step;
  }

  // The segment of a step at a time, or its first; null where it is not shown.
  indexOf(step, time) {
    const { segments } = this.model;
    const now = segments.findIndex((one) => one.step === step && one.start <= time && time < one.end);
    const index = now < 0 ? segments.findIndex((one) => one.step === step) : now;
    return index < 0 ? null : index;
  }

  // The doubtful segment after (by > 0) or before what is looked at; null where there is none.
  nextDoubtful(by) {
    const doubtful = [...this.model.segments.keys()].filter((index) => this.model.segments[index].why);
    const from = this.picked ?? lastAt(this.starts, this.time) + (by > 0 ? 0 : 1);
    const found = by > 0 ? doubtful.find((index) => index > from || (this.picked === null && index === from)) : doubtful.findLast((index) => index < from);
    return found ?? (by > 0 ? doubtful[0] : doubtful.at(-1)) ?? null;
  }

  segmentsOf(step) {
    return this.model.segments.filter((segment) => segment.step === step);
  }

  confidenceOf(step) {
    const known = this.segmentsOf(step).filter((segment) => segment.confidence !== null);
    const length = known.reduce((sum, segment) => sum + segment.end - segment.start, 0);
    if (!length) return null;
    return known.reduce((sum, segment) => sum + segment.confidence * (segment.end - segment.start), 0) / length;
  }

  setTime(time) {
    if (time === this.time) return;
    this.time = time;
    this.emit("time");
    this.tell("time", { time });
  }

  hover(step) {
    if (step === this.hovered) return;
    this.hovered = step;
    this.emit("active");
  }

  select(step, index = null) {
    this.selected = step;
    this.picked = index;
    this.hovered = null;
    this.emit("active");
    this.emit("pick");
    this.tell("step-select", { step });
    if (index !== null) this.tell("segment-select", { index, segment: this.model.segments[index] });
  }

  seek(time) {
    const seconds = Math.min(Math.max(time, this.model.offset), this.model.end);
    this.showFrame?.(seconds);
    this.setTime(seconds);
    this.emit("seek");
    this.options.onSeek?.(seconds);
  }

  // A step was chosen somewhere: look at it, and go where it begins (or to `time`).
  choose(step, time) {
    const index = this.indexOf(step, time ?? this.time);
    this.select(step, index);
    const begin = time ?? this.model.segments[index ?? -1]?.start;
    if (begin !== undefined) this.seek(begin);
  }

  pick(index) {
    const { step, start } = this.model.segments[index];
    this.select(step, index);
    this.seek(start);
  }
}

// Elements of a step light up together: those with `data-step` within `container`.
export function highlight(state, container) {
  let marked = [];
  const mark = () => {
    for (const element of marked) element.classList.remove("on");
    const step = state.active;
    marked = step === null ? [] : [...container.querySelectorAll(`[data-step="${step}"]`)];
    for (const element of marked) element.classList.add("on");
  };
  state.on("active", mark);
  mark();
  return mark;
}

// Mouse and keyboard focus over an element with `data-step` make it the step that is looked at.
export function followPointer(state, container) {
  const over = (event) => {
    const step = event.target.closest?.("[data-step]")?.dataset.step;
    state.hover(step === undefined || step === "" ? null : Number(step));
  };
  container.addEventListener("pointerover", over);
  container.addEventListener("focusin", over);
  container.addEventListener("pointerleave", () => state.hover(null));
  container.addEventListener("focusout", () => state.hover(null));
}
