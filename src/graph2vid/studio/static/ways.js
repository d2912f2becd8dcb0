// The way of an arrow, from under one box to above another.

const HEAD = 7;

export function wayOf({ boxes }, { from, to, lanes }) {
  const [start, end] = [boxes[from], boxes[to]];
  let [x, y] = [start.x + start.width / 2, start.y + start.height];
  const [tipX, tipY] = [end.x + end.width / 2, end.y - 1];
  let shaft = `M${x} ${y}`;
  for (const [laneX, top, bottom] of [...lanes, [tipX, tipY - HEAD, tipY - HEAD]]) {
    const bend = 0.6 * (top - y);
    shaft += `C${x} ${y + bend} ${laneX} ${top - bend} ${laneX} ${top}`;
    if (bottom > top) shaft += `V${bottom}`;
    [x, y] = [laneX, bottom];
  }
  return { shaft, head: `M${tipX} ${tipY}l-4.5 ${-HEAD - 1}q4.5 2 9 0Z` };
}
