// One small label beside the mouse.

import { el } from "./dom.js";

export function makeTip(state) {
  const tip = el("div", { class: "tip", hidden: true, "aria-hidden": "true" });
  state.tip = (event, ...lines) => {
    tip.replaceChildren(...lines.map((line) => el("div", null, line)));
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    const x = Math.min(event.clientX + 14, window.innerWidth - box.width - 8);
    const y = event.clientY + 18 + box.height > window.innerHeight ? event.clientY - box.height - 10 : event.clientY + 18;
    tip.style.setProperty("transform", `translate(${Math.max(8, x)}px, ${y}px)`);
  };
  state.untip = () => {
    tip.hidden = true;
  };
  return tip;
}
