// Where in the picture text was read: a box around it, as long as it is on the screen. The words are in the transcript.

import { svg } from "./dom.js";

// A drawing over the video that is fitted into its element as the picture is.
export function makeBoxes(state) {
  const { video, model } = state;
  const written = model.cues.filter(([, , , , box]) => box);
  const drawing = svg("svg", { class: "boxes", "aria-hidden": "true" });
  const fit = () => video.videoWidth && drawing.setAttribute("viewBox", `0 0 ${video.videoWidth} ${video.videoHeight}`);
  const boxOf = ([start, end, , kind, box]) => {
    const [x, y, width, height] = box.map((share) => `${100 * share}%`);
    const step = kind === "caption" ? state.stepAt((start + end) / 2) : null;
    return svg("rect", { class: "read-box", x, y, width, height, style: step === null ? {} : { "--colour": model.steps[step].colour } });
  };
  let shown = [];
  const follow = () => {
    const now = written.filter(([start, end]) => start <= state.time && state.time < end);
    if (now.length === shown.length && now.every((cue, at) => cue === shown[at])) return;
    shown = now;
    drawing.replaceChildren(...now.map(boxOf));
  };
  video.onloadedmetadata = fit; // of the boxes that are shown now: the video outlives them
  state.on("time", follow);
  fit();
  follow();
  return drawing;
}
