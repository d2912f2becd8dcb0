// Small pictures of the video and its waveform, under the axis; drawn for what is in sight alone.

import { makeStrip, secondsAt } from "./strip.js";

const PICTURES = 34; // pixels
const WAVE = 22;

// Which of `number` equal parts of `duration` are shown in so many pixels: one picture beside the other, none squeezed.
export function picturesFor({ left, right, width }, { duration, number, wide }) {
  const found = [];
  if (!number || !duration) return found;
  const perPixel = (right - left) / width;
  for (let from = Math.floor(left / perPixel / wide) * wide; from * perPixel < right; from += wide) {
    if (from < 0 || from * perPixel >= duration) continue;
    const share = ((from + wide / 2) * perPixel) / duration;
    found.push({ x: from - left / perPixel, part: Math.min(number - 1, Math.floor(share * number)) });
  }
  return found;
}

// The largest of the peaks between two times.
export function loudest(peaks, duration, from, to) {
  const first = Math.max(0, Math.floor((from / duration) * peaks.length));
  const last = Math.min(peaks.length, Math.max(first + 1, Math.ceil((to / duration) * peaks.length)));
  let most = 0;
  for (let at = first; at < last; at += 1) most = Math.max(most, peaks[at]);
  return most;
}

// `state.options.film()` gives {image, pictures, width, height, peaks, duration}, or {part} while they are made.
export function makeFilmstrip(state) {
  const canvas = makeStrip(state, {
    name: "film-strip",
    height: PICTURES + WAVE,
    also: ["film"],
    calm: true,
    role: "img",
    "aria-label": "Small pictures of the video, and how loud it is",
    draw(brush, sight) {
      const film = state.options.film();
      if (!film?.duration) {
        Object.assign(brush, { fillStyle: state.theme.dim, font: `12px ${state.theme.font}`, textBaseline: "middle" });
        brush.fillText(film ? `${film.stage[0].toUpperCase()}${film.stage.slice(1)} … ${film.part}%` : "", 4, PICTURES / 2);
        return;
      }
      const { image, pictures, width, height, peaks, duration } = film;
      if (image) {
        const wide = (width * PICTURES) / height;
        for (const { x, part } of picturesFor(sight, { duration, number: pictures, wide })) {
          brush.drawImage(image, part * width, 0, width, height, x, 0, wide - 1, PICTURES);
        }
      }
      if (!peaks.length) return;
      brush.fillStyle = state.theme.dim;
      const [step, middle] = [2, PICTURES + WAVE / 2];
      const loud = Math.max(...peaks, 16); // what is quiet all along fills the line, too
      const seconds = (sight.right - sight.left) / sight.width;
      for (let x = 0; x < sight.width; x += step) {
        const from = sight.left + x * seconds;
        if (from >= duration) break;
        const high = Math.max(0.5, (loudest(peaks, duration, from, from + step * seconds) * (WAVE - 2)) / (2 * loud));
        brush.fillRect(x, middle - high, step - 0.5, 2 * high);
      }
    },
  });
  canvas.addEventListener("click", (event) => state.seek(secondsAt(state, event)));
  return canvas;
}
