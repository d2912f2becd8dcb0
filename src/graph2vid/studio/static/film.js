// Small pictures and the waveform of a video: made by the server once, and drawn under the axis.

import * as api from "./api.js";

const AGAIN = 700; // milliseconds between two looks

// Asks for them, and tells `take` how far they are ({stage, part}), and when they are there ({image, pictures, width, height, peaks,
// duration}). Returns what stops asking.
export function followFilm(context, take) {
  const path = context.path("/film");
  const strip = `/api/${context.path("/film/strip")}`;
  let [timer, isOver] = [0, false];
  async function look(first) {
    const found = await (first ? api.post(path) : api.get(path)).catch(() => null); // it is only a picture
    if (isOver || !found) return;
    if (!found.job) {
      const image = found.pictures ? new Image() : null;
      if (image) {
        image.src = strip;
        await image.decode().catch(() => {});
      }
      if (!isOver && (found.pictures || found.peaks.length)) take({ ...found, image });
      return;
    }
    const { state, done, total, stage } = found.job;
    if (!["waiting", "running"].includes(state)) return;
    take({ stage: state === "waiting" ? "making small pictures" : stage, part: total ? Math.round((100 * done) / total) : 0 });
    timer = setTimeout(() => look(false), AGAIN);
  }
  look(true);
  return () => {
    isOver = true;
    clearTimeout(timer);
  };
}
