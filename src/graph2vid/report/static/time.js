// Times in seconds, as people read them.

export function formatTime(seconds, digits = 1) {
  const unit = 10 ** digits;
  const whole = Math.round(Math.abs(seconds) * unit);
  const rest = whole % (60 * unit);
  const minutes = Math.floor(whole / (60 * unit)) % 60;
  const hours = Math.floor(whole / (3600 * unit));
  const text = (rest / unit).toFixed(digits).padStart(digits ? 3 + digits : 2, "0");
  const sign = seconds < 0 && whole ? "-" : "";
  return hours ? `${sign}${hours}:${String(minutes).padStart(2, "0")}:${text}` : `${sign}${minutes}:${text}`;
}

export function formatSpan(start, end) {
  return `${formatTime(start)}–${formatTime(end)}`;
}

export function spokenSpan(start, end) {
  return `from ${formatTime(start)} to ${formatTime(end)}`;
}

// How much more the best alternative costs; "inf" where there is none.
export function formatMargin(margin) {
  return margin === "inf" ? "∞" : margin.toFixed(1);
}

export function percent(share) {
  return `${Math.round(100 * share)}%`;
}

// The distance of ticks that suits so many seconds per pixel.
export function tickSeconds(secondsPerPixel, leastPixels) {
  const least = secondsPerPixel * leastPixels;
  const nice = [0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400];
  return nice.find((step) => step >= least) ?? Math.ceil(least / 86400) * 86400;
}

// The last of ascending `starts` that is not after `at`; -1 where there is none.
export function lastAt(starts, at) {
  let low = 0;
  let high = starts.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (starts[middle] <= at) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

// The nearest of `targets` ({at, name}) that lies within `reach` of a time; null where none does.
export function nearest(targets, time, reach) {
  let best = null;
  for (const target of targets) {
    const far = Math.abs(target.at - time);
    if (far <= reach && (best === null || far < Math.abs(best.at - time))) best = target;
  }
  return best;
}

// The border of a clip that is nearest to a time.
export function onClips(time, offset, clip) {
  return offset + Math.round((time - offset) / clip) * clip;
}

// A span after one of its borders, or all of it, was moved to `time`: whole clips, at least one, inside of [first, last].
export function movedSpan({ start, end }, edge, time, { first, last, clip }) {
  const at = onClips(time, first, clip);
  if (edge === "start") return { start: Math.min(Math.max(at, first), end - clip), end };
  if (edge === "end") return { start, end: Math.max(Math.min(at, last), start + clip) };
  const begin = Math.min(Math.max(at, first), last - (end - start));
  return { start: begin, end: begin + end - start };
}

// Zooms so that the second under the pointer stays there; returns the left end in pixels of the whole.
export function scrollFor(fraction, whole, share, width) {
  return fraction * whole - share * width;
}
