// The video, what happens now, and the way from step to step. Without a video there is a playhead all the same.

import { absence, chip, el, icon, ordinal } from "./dom.js";
import { formatSpan, formatTime, percent } from "./time.js";

const BACK = "M15 5l-7 7 7 7V5z";
const FORTH = "M9 5l7 7-7 7V5z";

// The text of a cue has tags of its own.
function escaped(text) {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

const SITES = /^https?:\/\/(?:[\w-]+\.)*(youtube\.com|youtu\.be|youtube-nocookie\.com|vimeo\.com|dailymotion\.com)(?:[/:]|$)/i;
const FRAME = 1 / 25; // seconds; browsers do not say how long a frame is
const MOST_SPEED = 8;

// A page of a video platform is no file that could be played here: say so, and lead there at this time.
function makeElsewhere(state, { url }) {
  const link = el("a", { target: "_blank", rel: "noopener noreferrer" });
  const show = () => {
    const at = Math.floor(state.time);
    link.href = `${url}${url.includes("?") ? "&" : "?"}t=${at}s`;
    link.textContent = `Open it at ${formatTime(at, 0)}`;
  };
  state.on("time", show);
  show();
  return el("div", { class: "screen" }, el("p", { class: "notice", role: "status" }, "This video is on a platform that does not let other pages play its files. All else works without it. ", link));
}

export function makePlayer(state) {
  const { video } = state.model;
  if (SITES.test(video.url)) return makeElsewhere(state, video);
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
  for (const [start, end, text, kind] of state.model.cues) {
    if (end > start && !kind) captions.addCue(new VTTCue(start, end, escaped(text)));
  }
  captions.mode = "hidden";
  let wanted = null; // where to go as soon as the frame before is there: who drags is quicker than the video
  const follow = () => {
    if (wanted === null) state.setTime(player.currentTime);
    if (!player.paused && !player.ended) requestAnimationFrame(follow);
  };
  const turn = (playing) => () => {
    state.playing = playing;
    follow();
  };
  player.addEventListener("play", turn(true));
  for (const name of ["pause", "ended"]) player.addEventListener(name, turn(false));
  player.addEventListener("timeupdate", () => player.seeking || wanted !== null || state.setTime(player.currentTime));
  player.addEventListener("seeked", () => {
    if (wanted === null) {
      if (!state.dragging) state.setTime(player.currentTime);
      return;
    }
    player.currentTime = wanted;
    wanted = null;
  });
  state.showFrame = (seconds) => {
    if (player.seeking) wanted = seconds;
    else player.currentTime = seconds;
  };
  if (/^(https?:|file:|blob:|\/|[^:]*$)/.test(video.url)) player.src = video.url;
  state.video = player;
  return el("div", { class: "screen" }, player, notice);
}

// Playing, stopping, and stepping, as the keys Space, J, K, L and the arrows do.
export function makeTransport(state) {
  let back = 0; // times the speed, backwards
  let last = 0;
  const rewind = (now) => {
    if (!back) return;
    state.seek(state.time - (back * Math.min(now - last, 200)) / 1000);
    last = now;
    if (state.time > state.model.offset) requestAnimationFrame(rewind);
    else back = 0;
  };
  const stop = () => {
    back = 0;
    state.video?.pause();
    if (state.video) state.video.playbackRate = 1;
  };
  const forth = (rate) => {
    back = 0;
    if (!state.video) return;
    state.video.playbackRate = rate;
    state.video.play()?.catch(() => {}); // what cannot be played says so itself
  };
  return {
    stop,
    toggle: () => (back || (state.video && !state.video.paused) ? stop() : forth(1)),
    faster: () => forth(state.video && !state.video.paused ? Math.min(2 * state.video.playbackRate, MOST_SPEED) : 1),
    backwards() {
      const speed = back ? Math.min(2 * back, MOST_SPEED) : 1;
      stop();
      back = speed;
      last = performance.now();
      requestAnimationFrame(rewind);
    },
    step(by, isSecond) {
      stop();
      state.seek(state.time + by * (isSecond ? 1 : state.video ? FRAME : state.model.clip_seconds));
    },
  };
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
    if (target) state.pick(Math.min(Math.max(index, 0), state.starts.length - 1));
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
      about.textContent = "Choose a step to go there.";
      name.title = about.title = "";
      return;
    }
    const found = state.model.steps[step];
    sign.replaceChildren(chip(found));
    name.textContent = found.text;
    about.textContent = describe(state, step);
    [name.title, about.title] = [found.text, about.textContent]; // there may be no room for all of it
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
