// A canvas that stays in view while the timeline scrolls, and draws only the stretch of time that is seen.

import { el } from "./dom.js";

// `draw(brush, sight)` paints in CSS pixels, when the view changes, and on the events in `also`; `sight` has width, height, left and right in seconds, and x(seconds).
// One that is `calm` looks the same whichever step is looked at.
export function makeStrip(state, { name, height, draw, also = [], calm = false, ...attributes }) {
  const canvas = el("canvas", { class: `strip ${name}`, style: { height: `${height}px` }, ...attributes });
  let pending = false;
  let isSeen = true;
  let isOld = false; // it was not seen when it should have been painted
  const paint = () => {
    pending = false;
    const { width } = state.sight;
    isOld = !isSeen && !state.printing;
    if (!width || isOld || !canvas.isConnected) return;
    const density = Math.min(window.devicePixelRatio || 1, 2);
    Object.assign(canvas, { width: Math.round(width * density), height: Math.round(height * density) });
    canvas.style.setProperty("width", `${width}px`);
    const brush = canvas.getContext("2d");
    brush.scale(density, density);
    draw(brush, { ...state.sight, height, density });
  };
  const later = () => {
    if (state.printing) paint();
    else if (!pending) requestAnimationFrame(paint);
    pending = !state.printing;
  };
  new IntersectionObserver((entries) => {
    isSeen = entries[entries.length - 1].isIntersecting; // on a busy machine there are several, the latest last
    if (isSeen && isOld) later();
  }).observe(canvas);
  for (const event of ["layout", "theme", ...(calm ? [] : ["active"]), ...also]) state.on(event, later);
  return canvas;
}

// The colours of the theme as "rgb(…)": the variables hold light-dark() pairs, which only an element resolves.
export function readTheme(element) {
  const probe = el("span", { hidden: true });
  element.append(probe);
  const theme = { font: getComputedStyle(element).fontFamily };
  for (const name of ["text", "dim", "line", "panel", "panel-2", "accent", "warn"]) {
    probe.style.setProperty("color", `var(--${name})`);
    theme[name] = getComputedStyle(probe).color;
  }
  probe.remove();
  return theme;
}

export function channels(colour) {
  return colour.match(/[\d.]+/g).slice(0, 3).map(Number);
}

// The second in which a mouse event on a canvas or track lies.
export function secondsAt(state, event) {
  const box = event.currentTarget.getBoundingClientRect();
  const { left, right, width } = state.sight;
  return left + ((event.clientX - box.left) / width) * (right - left);
}
