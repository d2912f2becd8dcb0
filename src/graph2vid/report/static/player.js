// The video, what happens now, and the way from step to step. Without a video there is a playhead all the same.

import { absence, chip, el, icon, ordinal } from "./dom.js";
import { formatSpan, formatTime, lastAt, percent } from "./time.js";

const ICONS = {
  back: "M6 5h2.5v14H6zM19 5v14L9.5 12z",
  forth: "M15.5 5H18v14h-2.5zM5 5v14l9.5-7z",
  play: "M8 5v14l11-7z",
  pause: "M6.5 5h4v14h-4zM13.5 5h4v14h-4z",
  sound: "M4 9v6h4l5 4.5v-15L8 9zM15.5 8.2v7.6a4.3 4.3 0 0 0 0-7.6zM15.5 4.6v2a6.2 6.2 0 0 1 0 10.8v2a8 8 0 0 0 0-14.8z",
  silence: "M4 9v6h4l5 4.5v-15L8 9zM15 9.4l1.4-1.4 2.1 2.1L20.6 8 22 9.4 19.9 11.5 22 13.6 20.6 15l-2.1-2.1-2.1 2.1-1.4-1.4 2.1-2.1z",
  captions: "M4 5h16a1.5 1.5 0 0 1 1.5 1.5v11A1.5 1.5 0 0 1 20 19H4a1.5 1.5 0 0 1-1.5-1.5v-11A1.5 1.5 0 0 1 4 5zm1.5 9v1.8h6V14zm7.5 0v1.8h5.5V14zm-7.5-3.6v1.8H10v-1.8zm6 0v1.8h7v-1.8z",
  fill: "M4 4h6v2H6v4H4zM14 4h6v6h-2V6h-4zM4 14h2v4h4v2H4zM18 14h2v6h-6v-2h4z",
};

// The text of a cue has tags of its own.
function escaped(text) {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

const SITES = /^https?:\/\/(?:[\w-]+\.)*(youtube\.com|youtu\.be|youtube-nocookie\.com|vimeo\.com|dailymotion\.com)(?:[/:]|$)/i;
const FRAME = 1 / 25; // seconds, until some were shown: browsers do not say how long a frame is
const SPEEDS = [1, 1.5, 2, 0.25, 0.5]; // one after the other, by its button
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
  // Its controls stand below: those of the browser lie over the frame that is looked at.
  const player = el("video", { class: "video", preload: "metadata", playsinline: true, onclick: () => state.transport.toggle() });
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
    state.emit("playing");
    follow();
  };
  player.addEventListener("play", turn(true));
  for (const name of ["pause", "ended"]) player.addEventListener(name, turn(false));
  watchFrames(state, player);
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

// The length of a frame is the shortest time between two that are shown one after the other.
function watchFrames(state, player) {
  let last = Infinity;
  state.frame = null;
  const look = (_, { mediaTime }) => {
    if (!player.paused && mediaTime > last) state.frame = Math.min(state.frame ?? Infinity, mediaTime - last);
    last = player.paused ? Infinity : mediaTime;
    player.requestVideoFrameCallback(look);
  };
  player.requestVideoFrameCallback?.(look);
}

// Playing, stopping, and stepping, as the keys Space, J, K, L and the arrows do, and the buttons under the video.
export function makeTransport(state) {
  let back = 0; // times the speed, backwards
  let last = 0;
  let speed = 1; // forwards, as it was chosen
  const rewind = (now) => {
    if (!back) return;
    state.seek(state.time - (back * Math.min(now - last, 200)) / 1000);
    last = now;
    if (state.time > state.model.offset) requestAnimationFrame(rewind);
    else stop();
  };
  const stop = () => {
    back = 0;
    state.video?.pause();
    if (state.video) state.video.playbackRate = speed;
    state.emit("playing");
  };
  const forth = (rate) => {
    back = 0;
    if (!state.video) return;
    state.video.playbackRate = rate;
    state.video.play()?.catch(() => {}); // what cannot be played says so itself
  };
  const isForth = () => Boolean(state.video && !state.video.paused);
  const isPlaying = () => back > 0 || isForth();
  return {
    stop,
    isPlaying,
    toggle: () => (isPlaying() ? stop() : forth(speed)),
    faster: () => forth(isForth() ? Math.min(2 * state.video.playbackRate, MOST_SPEED) : speed),
    backwards() {
      const faster = back ? Math.min(2 * back, MOST_SPEED) : 1;
      stop();
      back = faster;
      last = performance.now();
      state.emit("playing");
      requestAnimationFrame(rewind);
    },
    step(by, isSecond) {
      stop();
      state.seek(state.time + by * (isSecond ? 1 : state.video ? (state.frame ?? FRAME) : state.model.clip_seconds));
    },
    nextSpeed() {
      speed = SPEEDS[(SPEEDS.indexOf(speed) + 1) % SPEEDS.length];
      if (state.video) state.video.playbackRate = speed;
      state.emit("playing");
    },
    mute() {
      if (state.video) state.video.muted = !state.video.muted;
      state.emit("playing");
    },
    fill() {
      if (document.fullscreenElement) document.exitFullscreen();
      else state.element.querySelector(".player")?.requestFullscreen?.()?.catch(() => {}); // where it is not allowed all stays as it is
    },
  };
}

// The step that is shown now, and under it what plays the video.
export function makeNow(state) {
  const sign = el("span", { class: "now-sign" });
  const name = el("p", { class: "now-name" });
  const about = el("p", { class: "now-about dim" });
  const words = el("p", { class: "now-said" });
  const { cues } = state.model;
  const starts = cues.map(([start]) => start);
  let shown;
  const show = () => {
    const cue = cues[lastAt(starts, state.time)];
    words.textContent = cue && state.time <= cue[1] ? `“${cue[2]}”` : "";
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
  return el("div", { class: "now" }, el("div", { class: "now-step" }, sign, el("div", { class: "now-words" }, name, about, words)), makeControls(state));
}

function makeControls(state) {
  const { transport, video } = state;
  const clock = el("output", { class: "clock" });
  const tick = () => (clock.textContent = formatTime(state.time));
  state.on("time", tick);
  tick();
  const move = (by) => {
    const at = state.segmentAt(state.time);
    const before = state.starts.findLastIndex((start) => start <= state.time);
    const index = by > 0 ? before + 1 : at >= 0 || before < 0 ? before - 1 : before;
    const target = Math.min(Math.max(index, 0), state.starts.length - 1);
    if (target >= 0) state.pick(target);
  };
  const button = (sign, label, act, key = null) => el("button", { type: "button", class: "button round quiet", "aria-label": label, title: key ? `${label} (${key})` : label, onclick: act }, icon(ICONS[sign]));
  const whole = el("span", { class: "clock-whole dim" }, `/ ${formatTime(state.model.end - state.model.offset, 0)}`);
  const [back, forth] = [button("back", "Previous step", () => move(-1), "↑"), button("forth", "Next step", () => move(1), "↓")];
  // The mouse does not take the focus along: Space plays, whichever was clicked last.
  const strip = (...parts) => el("div", { class: "controls", role: "group", "aria-label": "Playing", onmousedown: (event) => event.preventDefault() }, parts);
  if (!video) return strip(back, forth, clock, whole);

  const play = button("play", "Play", transport.toggle);
  const mute = button("sound", "Mute", transport.mute);
  const speed = el("button", { type: "button", class: "button round quiet speed", title: "Speed: click for another", onclick: transport.nextSpeed });
  const say = (made, sign, label, key) => {
    if (made.getAttribute("aria-label") !== label) made.replaceChildren(icon(ICONS[sign]));
    made.setAttribute("aria-label", label);
    made.title = `${label} (${key})`;
  };
  const show = () => {
    const isPlaying = transport.isPlaying();
    say(play, isPlaying ? "pause" : "play", isPlaying ? "Pause" : "Play", "Space");
    say(mute, video.muted ? "silence" : "sound", video.muted ? "Unmute" : "Mute", "M");
    speed.textContent = `${video.playbackRate}×`;
    speed.setAttribute("aria-label", `Speed ${video.playbackRate}×`);
  };
  video.onratechange = show;
  state.on("playing", show);
  show();
  const [words] = video.textTracks;
  const caption = words?.cues?.length ? button("captions", "Captions on the video", () => showWords(words.mode !== "showing")) : null;
  const showWords = (isOn) => {
    words.mode = isOn ? "showing" : "hidden";
    caption.setAttribute("aria-pressed", String(isOn));
  };
  if (caption) showWords(words.mode === "showing");
  const fill = document.fullscreenEnabled ? button("fill", "Full screen", transport.fill, "F") : null;
  return strip(back, play, forth, clock, whole, el("span", { class: "controls-gap" }), speed, mute, caption, fill);
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
