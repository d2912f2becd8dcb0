// A report: the result that lies in the page, and the video where it was embedded.

import { mountResult } from "./view.js";

const model = JSON.parse(document.getElementById("result").textContent);
const embedded = document.getElementById("video");
if (embedded) {
  const bytes = Uint8Array.from(atob(embedded.textContent), (sign) => sign.charCodeAt(0));
  model.video.url = URL.createObjectURL(new Blob([bytes], { type: embedded.dataset.kind }));
  embedded.remove();
}
const view = mountResult(document.getElementById("view"), model);

// "#t=83.5" goes to a time, "#step=4" to a step by its number; in links to the report, and while it is open.
function follow() {
  const asked = new URLSearchParams(location.hash.slice(1));
  const [time, step] = [Number.parseFloat(asked.get("t")), Number(asked.get("step"))];
  const place = model.steps.findIndex(({ number }) => number === step);
  if (place >= 0) view.state.choose(place);
  if (Number.isFinite(time)) view.seek(time);
}
window.addEventListener("hashchange", follow);
follow();
