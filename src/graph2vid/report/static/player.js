// The video, what happens now, and the way from step to step. Without a video there is a playhead all the same.

import { absence, chip, el, icon, ordinal } from "./dom.js";
import { formatSpan, formatTime, percent } from "./time.js";

const BACK = "M15 5l-7 7 7 7V5z";
const FORTH = "M9 5l7 7-7 7V5z";

// The text of a cue has tags of its own.
function escaped(text) {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

export function makePlayer(state) {
  const { video } = state.model;
  const player = el("video", { class: "video", controls: true, preload: "metadata", playsinline: true });
  player.setAttribute("aria-label", `Video ${video.name}`);
  const notice = el("p", { class: "notice", role: "status", hidden: true });
  player.addEventListener("error", () => {
    notice.hidden = false;
    notice.replaceChildren(`This browser cannot play ${video.name}, or it is not where it was. All else works without it.`);
    if (/^https?:/.test(video.url)) {
      notice.append(" ", el("a", { href: video.url, target: "_blank", rel: "noopener noreferrer" }, "Open the video"));
    }
  });
  const captions = player.addTextTrack("captions", "Transcript", "en");
  for (const [start, end, text] of state.model.cues) {
    if (end > start) captions.addCue(new VTTCue(start, end, escaped(text)));
  }
  captions.mode = "hidden";
  const follow = () => {
    state.setTime(player.currentTime);
    if (!player.paused && !player.ended) requestAnimationFrame(follow);
  };
  const turn = (playing) => () => {
    state.playing = playing;
    follow();
  };
  player.addEventListener("play", turn(true));
  for (const name of ["pause", "ended"]) player.addEventListener(name, turn(false));
  for (const name of ["timeupdate", "seeked"]) player.addEventListener(name, () => state.setTime(player.currentTime));
  if (/^(https?:|file:|blob:|\/|[^:]*$)/.test(video.url)) player.src = video.url;
  state.video = player;
  return el("div", { class: "screen" }, player, notice);
}

export function makeNow(state) {
  const sign = el("span", { class: "now-sign" });
  const name = el("p", { class: "now-name" });
  const about = el("p", { class: "now-about dim" });
  const clock = el("output", { class: "clock" });
  const move = (by) => {
    const at = state.segmentAt(state.time);
    const before = state.starts.findLastIndex((start) => start <= state.time);
    const index = by > 0 ? before + 1 : at >= 0 || before < 0 ? before - 1 : before;
    const target = state.model.segments[Math.min(Math.max(index, 0), state.starts.length - 1)];
    if (target) state.choose(target.step, target.start);
  };
  const button = (label, path, by) => {
    const attributes = { type: "button", class: "button round", "aria-label": label, title: label };
    return el("button", { ...attributes, onclick: () => move(by) }, icon(path));
  };
  let shown;
  const show = () => {
    clock.textContent = formatTime(state.time);
    const now = state.stepAt(state.time);
    const step = state.hovered ?? now ?? state.selected;
    const key = `${step} ${now}`;
    if (key === shown) return;
    shown = key;
    if (step === null) {
      sign.replaceChildren(el("span", { class: "chip absent", "aria-hidden": "true" }, "·"));
      name.textContent = "No step here";
      about.textContent = "Choose a step in the timeline or the graph.";
      return;
    }
    const found = state.model.steps[step];
    sign.replaceChildren(chip(found));
    name.textContent = found.text;
    about.textContent = describe(state, step);
  };
  for (const event of ["time", "active"]) state.on(event, show);
  show();
  const steps = el("div", { class: "now-steps" }, button("Previous step", BACK, -1), clock, button("Next step", FORTH, 1));
  return el("div", { class: "now" }, sign, el("div", { class: "now-words" }, name, about), steps);
}

export function describe(state, step) {
  const spans = state.segmentsOf(step);
  const { steps } = state.model;
  const parts = [];
  if (!spans.length) parts.push(absence(steps[step]));
  else parts.push(`${ordinal(steps[step].place)} in the video`);
  for (const { start, end } of spans.slice(0, 3)) parts.push(formatSpan(start, end));
  if (spans.length > 3) parts.push("…");
  const sure = state.confidenceOf(step);
  if (sure !== null) parts.push(`${percent(sure)} sure`);
  const named = (others) => others.map((other) => steps[other].number + (steps[other].place ? "" : " (not shown)")).join(", ");
  const { after, instead_of: instead, optional } = steps[step];
  if (after.length) parts.push(`needs ${named(after)}`);
  if (optional && spans.length) parts.push("optional");
  if (instead.length) parts.push(`instead of ${named(instead)}`);
  return parts.join(" · ");
}
