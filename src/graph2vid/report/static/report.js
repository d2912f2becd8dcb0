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
const asked = /^#t=([\d.]+)$/.exec(location.hash);
if (asked) view.seek(Number(asked[1]));
