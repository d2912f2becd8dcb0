// The transcript: as blocks on the timeline, and as words to read and search. Of a long video only the words in sight exist.

import { el, rove, targetOf } from "./dom.js";
import { makeStrip, secondsAt } from "./strip.js";
import { formatTime, lastAt } from "./time.js";

const CHUNK = 40;
const HOLD = 4000; // milliseconds
const GUESS = 34; // pixels that a cue takes before it was drawn

function stepOfCue(state, [start, end]) {
  return state.stepAt((start + end) / 2);
}

export function makeCueStrip(state) {
  const { cues, steps } = state.model;
  const starts = cues.map(([start]) => start);
  const height = 16;
  const canvas = makeStrip(state, {
    name: "cue-strip",
    height,
    role: "img",
    "aria-label": `When something is said: ${cues.length} captions, listed under “Transcript”`,
    draw(brush, { x, left, right }) {
      const from = Math.max(0, lastAt(starts, left) - 3);
      for (let at = from; at < cues.length && starts[at] < right; at += 1) {
        const [start, end] = cues[at];
        const step = stepOfCue(state, cues[at]);
        const lit = state.active === null || step === state.active;
        brush.fillStyle = step === null ? state.theme.dim : steps[step].colour;
        brush.globalAlpha = (step === null ? 0.35 : 0.85) * (lit ? 1 : 0.25);
        const begin = x(start);
        brush.fillRect(begin, 4, Math.max(x(end) - begin - 1, 1.5), height - 8);
      }
      brush.globalAlpha = 1;
    },
  });
  const cueAt = (event) => {
    const time = secondsAt(state, event);
    const cue = cues[lastAt(starts, time)];
    return cue && time <= cue[1] ? cue : null;
  };
  canvas.addEventListener("pointermove", (event) => {
    const cue = cueAt(event);
    if (cue) state.tip(event, `${formatTime(cue[0])}  ${cue[2]}`);
    else state.untip();
    state.hover(cue && stepOfCue(state, cue));
  });
  canvas.addEventListener("pointerleave", () => {
    state.hover(null);
    state.untip();
  });
  canvas.addEventListener("click", (event) => {
    const cue = cueAt(event);
    if (cue) state.choose(stepOfCue(state, cue), cue[0]);
    else state.seek(secondsAt(state, event));
  });
  return canvas;
}

export function makeTranscript(state, marked) {
  const { cues, steps } = state.model;
  const label = "Transcript; arrow keys move, Enter plays from there";
  const list = el("div", { class: "cues", role: "group", "aria-label": label });
  const nothing = el("p", { class: "dim", hidden: true }, "Nothing of this is said.");
  let chunks = [];
  let current = null;

  const row = (at) => {
    const [start, , text, kind] = cues[at];
    const step = stepOfCue(state, cues[at]);
    const style = { "--colour": step === null ? "transparent" : steps[step].colour };
    return el(
      "button",
      { type: "button", class: "cue", "data-cue": at, "data-step": step ?? "", style, tabindex: -1 },
      el("span", { class: "cue-time" }, formatTime(start)),
      el("span", { class: "cue-text" }, kind ? el("span", { class: "dim" }, kind === "caption" ? "on screen: " : `${kind}: `) : "", text),
    );
  };
  const fillIn = (chunk) => {
    if (chunk.box.firstChild) return;
    chunk.box.replaceChildren(...chunk.members.map(row));
    chunk.box.style.removeProperty("height");
    marked();
    showNow();
  };
  const empty = (chunk) => {
    if (!chunk.box.firstChild || chunk.box.querySelector("[tabindex=\"0\"]")) return; // the way in for the keyboard stays
    chunk.box.style.setProperty("height", `${chunk.box.offsetHeight}px`);
    chunk.box.replaceChildren();
  };
  const observer = new IntersectionObserver(
    (entries) => {
      for (const entry of entries) {
        const chunk = chunks.find(({ box }) => box === entry.target);
        if (chunk && entry.isIntersecting) fillIn(chunk);
        else if (chunk && !state.printing) empty(chunk);
      }
    },
    { root: list, rootMargin: "400px" },
  );

  function build(words) {
    observer.disconnect();
    const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
    const members = [...cues.keys()].filter((at) => wanted.every((word) => cues[at][2].toLowerCase().includes(word)));
    chunks = [];
    for (let at = 0; at < members.length; at += CHUNK) {
      const part = members.slice(at, at + CHUNK);
      chunks.push({ members: part, box: el("div", { class: "chunk", style: { height: `${part.length * GUESS}px` } }) });
    }
    nothing.hidden = members.length > 0;
    list.replaceChildren(...chunks.map(({ box }) => box));
    list.scrollTop = 0;
    if (chunks.length) {
      fillIn(chunks[0]);
      /** @type {HTMLElement} */ (chunks[0].box.firstElementChild).tabIndex = 0;
    }
    for (const { box } of chunks) observer.observe(box);
  }

  const starts = cues.map(([start]) => start);
  function showNow() {
    const at = lastAt(starts, state.time);
    approach(at);
    const now = at >= 0 && state.time <= cues[at][1] + 0.5 ? at : null;
    const button = now === null ? null : list.querySelector(`[data-cue="${now}"]`);
    if (button === current) return;
    current?.classList.remove("now");
    button?.classList.add("now");
    current = button;
    if (button) keepInSight(button);
  }
  let heldUntil = 0; // who scrolls or moves in it is not carried off
  for (const name of ["wheel", "touchmove", "keydown"]) list.addEventListener(name, () => (heldUntil = performance.now() + HOLD), { passive: true });
  function keepInSight(button) {
    if (performance.now() < heldUntil) return;
    const [top, bottom] = [button.offsetTop, button.offsetTop + button.offsetHeight];
    if (top < list.scrollTop || bottom > list.scrollTop + list.clientHeight) list.scrollTop = top - list.clientHeight / 3;
  }
  function approach(at) {
    const chunk = chunks.find(({ members }) => at >= members[0] && at <= members.at(-1));
    if (chunk) fillIn(chunk);
  }
  state.on("time", showNow);
  state.on("tab", () => current && keepInSight(current)); // it was not seen until now
  state.on("print", () => chunks.forEach(fillIn));

  list.addEventListener("click", (event) => {
    const at = /** @type {HTMLElement | null} */ (targetOf(event).closest(".cue"))?.dataset.cue;
    if (at !== undefined) state.choose(stepOfCue(state, cues[at]), cues[at][0]);
  });
  const search = el("input", {
    type: "search",
    class: "field",
    placeholder: "Search the words",
    "aria-label": "Search the transcript",
    oninput: () => build(search.value),
  });
  build("");
  rove(list, ".cue", (cue, key, all) => {
    const by = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 }[key];
    if (!by) return null;
    const chunk = chunks.findIndex(({ box }) => box.contains(cue));
    if (chunks[chunk + by]) fillIn(chunks[chunk + by]);
    const members = chunks[chunk + by] ? [...list.querySelectorAll(".cue")] : all;
    return members[members.indexOf(cue) + by];
  });
  return { search, list: el("div", { class: "cue-box" }, nothing, list), stop: () => observer.disconnect() };
}
