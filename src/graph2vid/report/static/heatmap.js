// The evidence, steps × clips: the darker, the more a clip speaks for a step; with the path that was found.

import { el } from "./dom.js";
import { channels, makeStrip, secondsAt } from "./strip.js";
import { formatTime } from "./time.js";

function decoded(text) {
  return Uint8Array.from(atob(text), (sign) => sign.charCodeAt(0));
}

export function rowHeight(rows) {
  return rows <= 12 ? 18 : rows <= 24 ? 13 : rows <= 48 ? 9 : 5;
}

export function makeHeatmap(state) {
  const { evidence, offset, steps } = state.model;
  const [, clips] = evidence.shape;
  let shown = evidence; // all sources together, or one of them
  let [levels, usual] = [new Uint8Array(), 0];
  const show = (which) => {
    [shown, levels] = [which, decoded(which.bytes)];
    usual = Math.min(levels.toSorted()[levels.length >> 1], 254); // what most clips say of most steps is no sign
  };
  show(evidence);
  const rows = state.rows;
  const size = rowHeight(rows.length);
  const rowOf = new Map(rows.map((step, row) => [step, row]));
  const clipAt = (time) => Math.floor((time - offset) / evidence.clip_seconds);
  const mid = (step) => (rowOf.get(step) + 0.5) * size;

  function paintCells(brush, { width, height, density, left, right }) {
    const wide = Math.round(width * density);
    const image = new ImageData(wide, rows.length);
    const [low, high] = [channels(state.theme.panel), channels(state.theme.accent)];
    const ramp = Array.from({ length: 256 }, (_, level) => {
      const share = Math.max(0, (level - usual) / (255 - usual)) ** 0.9;
      return low.map((from, at) => Math.round(from + (high[at] - from) * share));
    });
    const perPixel = (right - left) / wide;
    for (let x = 0; x < wide; x += 1) {
      const first = Math.min(Math.max(0, clipAt(left + x * perPixel + 1e-9)), clips - 1);
      const stop = Math.min(clips, Math.max(first + 1, clipAt(left + (x + 1) * perPixel + 1e-9)));
      rows.forEach((step, row) => {
        let sum = 0; // clips that share a pixel show their mean
        for (let clip = first; clip < stop; clip += 1) sum += levels[step * clips + clip];
        const [red, green, blue] = ramp[Math.round(sum / (stop - first))];
        const at = 4 * (row * wide + x);
        image.data[at] = red;
        image.data[at + 1] = green;
        image.data[at + 2] = blue;
        image.data[at + 3] = 255;
      });
    }
    const sheet = new OffscreenCanvas(wide, rows.length);
    sheet.getContext("2d").putImageData(image, 0, 0);
    brush.imageSmoothingEnabled = false;
    brush.drawImage(sheet, 0, 0, width, height);
  }

  function paintPath(brush, { x }) {
    const { segments } = state.model;
    const stroke = (colour, width, way) => {
      brush.beginPath();
      Object.assign(brush, { strokeStyle: colour, lineWidth: width, lineCap: "round", lineJoin: "round" });
      way();
      brush.stroke();
    };
    const jumps = () => {
      segments.slice(1).forEach((next, at) => {
        const last = segments[at];
        brush.moveTo(x(last.end), mid(last.step));
        brush.lineTo(x(next.start), mid(next.step));
      });
    };
    const runs = () => {
      for (const { step, start, end } of segments) {
        brush.roundRect(x(start) + 0.75, rowOf.get(step) * size + 0.75, Math.max(x(end) - x(start), 3) - 1.5, size - 1.5, 3);
      }
    };
    for (const way of [jumps, runs]) {
      if (size >= 13) stroke(state.theme.panel, 3.5, way); // in low rows it would hide what it surrounds
      stroke(state.theme.text, way === jumps || size < 13 ? 1 : 1.75, way);
    }
  }

  const canvas = makeStrip(state, {
    name: "evidence",
    height: rows.length * size,
    role: "img",
    "aria-label": `Evidence for ${rows.length} steps in ${clips} clips, with the path that was found`,
    draw(brush, sight) {
      paintCells(brush, sight);
      if (state.active !== null) {
        brush.fillStyle = state.theme.panel;
        brush.globalAlpha = 0.55;
        const y = rowOf.get(state.active) * size;
        brush.fillRect(0, 0, sight.width, y);
        brush.fillRect(0, y + size, sight.width, sight.height - y - size);
        brush.globalAlpha = 1;
      }
      paintPath(brush, sight);
    },
  });
  const stepAt = (event) => {
    const row = Math.floor((event.clientY - canvas.getBoundingClientRect().top) / size);
    return rows[Math.min(Math.max(row, 0), rows.length - 1)];
  };
  canvas.addEventListener("pointermove", (event) => {
    const [step, time] = [stepAt(event), secondsAt(state, event)];
    const clip = Math.min(Math.max(clipAt(time), 0), clips - 1);
    const [low, high] = shown.range;
    const value = low + (levels[step * clips + clip] / 255) * (high - low);
    state.hover(step);
    state.tip(event, `${formatTime(time)}  ${steps[step].number}. ${steps[step].text}`, `${shown.name ?? "evidence"} ${value > 0 ? "+" : ""}${value.toPrecision(3)}`);
  });
  canvas.addEventListener("pointerleave", () => {
    state.hover(null);
    state.untip();
  });
  canvas.addEventListener("click", (event) => state.choose(stepAt(event), secondsAt(state, event)));

  const names = rows.map((step) => {
    const style = { height: `${size}px`, "--colour": steps[step].colour };
    return el("span", { class: "heat-name", "data-step": step, style }, size >= 13 ? steps[step].number : "");
  });
  const sources = evidence.sources ?? [];
  const options = ["all together", ...sources.map(({ name }) => name)].map((name) => el("option", null, name));
  const pick = el("select", { class: "heat-source", "aria-label": "Which evidence is drawn" }, options);
  pick.addEventListener("change", () => {
    show(sources[pick.selectedIndex - 1] ?? evidence);
    state.emit("layout");
  });
  return { canvas, pick: sources.length ? pick : null, names: el("div", { class: "heat-names", "aria-hidden": "true" }, names) };
}
