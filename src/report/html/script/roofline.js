// ---- Roofline: FLOP per byte against FLOP/s, under what the device can do ----

const MOST_DOTS = 400;

function rooflineLayers() {
  const placed = (i) => layers.intensity[i] > 0 && layers.rate[i] > 0;
  const all = layers.path.map((_, i) => i).filter(placed);
  const leaves = all.filter((i) => children[i].length === 0);
  const shown = (leaves.length > 0 ? leaves : all).sort((a, b) => mainTotal[b] - mainTotal[a]);
  return {shown: shown.slice(0, MOST_DOTS), of: shown.length, leaves: leaves.length > 0};
}

function sayRoofline(dots, roofs) {
  const say = byId('roofline-say');
  if (dots.of === 0) {
    say.textContent = 'No layer has both FLOPs and a time, so there is nothing to place: operators are counted unless counting is off.';
    return;
  }
  const which = dots.leaves ? 'Layers without children' : 'Layers';
  const of = dots.of > dots.shown.length ? `, the ${dots.shown.length} of ${formatCount(dots.of)} that took longest` : '';
  const by = roofs
    ? ` Roofs: ${roofs.name} (${roofs.origin}${roofs.source ? `: ${roofs.source}` : ''}).`
    : ' The device’s peaks are not known, so no roof is drawn.';
  say.textContent = `${which}${of}: forward and backward, over the time in which the device was busy with them; larger, more time. Filled: limited by compute; hollow: by memory.${by}`;
}

function logAxis(low, high, from, to) {
  const [a, b] = [Math.log10(low), Math.log10(high)];
  return (value) => from + ((Math.log10(value) - a) / (b - a)) * (to - from);
}

// Powers of ten; of few decades their doubles and halves, too.
const decades = (low, high) => {
  const factors = Math.log10(high / low) < 3 ? [1, 2, 5] : [1];
  const all = [];
  for (let power = Math.floor(Math.log10(low)); 10 ** power <= high; power++) {
    all.push(...factors.map((factor) => factor * 10 ** power).filter((value) => low <= value && value <= high));
  }
  return all;
};

function drawRoofs(svg, roofs, x, y, lowX, highX) {
  roofs.peaks.forEach(([format, peak]) => {
    const ridge = roofs.bytes_per_s > 0 ? peak / roofs.bytes_per_s : lowX;
    const from = Math.max(lowX, Math.min(highX, ridge));
    svg.append(drawing('line', {class: 'roof', x1: x(from), x2: x(highX), y1: y(peak), y2: y(peak)}));
    svg.append(text(x(highX), y(peak) - 7, `${format} peak ${formatSi(peak, 'FLOP/s')}`, 'end', {class: 'strong'}));
  });
  if (roofs.bytes_per_s <= 0) return;
  const top = roofs.peaks.length > 0 ? Math.max(...roofs.peaks.map((peak) => peak[1])) : roofs.bytes_per_s * highX;
  const end = Math.min(highX, top / roofs.bytes_per_s);
  if (end <= lowX) return;
  const [x1, y1, x2, y2] = [x(lowX), y(lowX * roofs.bytes_per_s), x(end), y(end * roofs.bytes_per_s)];
  svg.append(drawing('line', {class: 'roof', x1, y1, x2, y2}));
  const turn = (Math.atan2(y2 - y1, x2 - x1) * 180) / Math.PI;
  const at = [(x1 + x2) / 2, (y1 + y2) / 2 - 8];
  svg.append(text(...at, `memory ${formatSi(roofs.bytes_per_s, 'B/s')}`, 'middle', {class: 'strong', transform: `rotate(${turn} ${at[0]} ${at[1]})`}));
}

function startRoofline() {
  const roofs = data.roofs;
  const dots = rooflineLayers();
  if (data.summary) {
    byId('roofline-say').textContent = 'A summary has no times, so no rates.';
    return;
  }
  sayRoofline(dots, roofs);
  if (dots.of === 0) return;
  const [height, left, right, top, bottom] = [420, 104, 24, 26, 46];
  const xs = dots.shown.map((i) => layers.intensity[i]);
  const ys = dots.shown.map((i) => layers.rate[i]);
  const peaks = roofs ? roofs.peaks.map((peak) => peak[1]) : [];
  const ridges = roofs && roofs.bytes_per_s > 0 ? peaks.map((peak) => peak / roofs.bytes_per_s) : [];
  const lowX = Math.min(...xs) / 2;
  const highX = Math.max(...xs, ...ridges) * 3;
  const under = roofs && roofs.bytes_per_s > 0 ? [lowX * roofs.bytes_per_s] : [];
  const lowY = Math.min(...ys, ...under) / 2;
  const highY = Math.max(...ys, ...peaks) * 2;
  const x = logAxis(lowX, highX, left, PLOT_WIDTH - right);
  const y = logAxis(lowY, highY, height - bottom, top);
  const svg = svgOf(height, 'Roofline: layers by FLOP per byte and FLOP per second');
  for (const tick of decades(lowX, highX)) {
    svg.append(drawing('line', {class: 'grid', x1: x(tick), x2: x(tick), y1: top, y2: height - bottom}));
    svg.append(text(x(tick), height - bottom + 18, tick >= 1 ? plain(`${formatSi(tick, '')} `).trim() : String(Number(tick.toPrecision(1))), 'middle'));
  }
  for (const tick of decades(lowY, highY)) {
    svg.append(drawing('line', {class: 'grid', x1: left, x2: PLOT_WIDTH - right, y1: y(tick), y2: y(tick)}));
    svg.append(text(left - 10, y(tick) + 4, plain(formatSi(tick, 'FLOP/s')), 'end'));
  }
  svg.append(text((left + PLOT_WIDTH - right) / 2, height - 6, 'FLOP per byte', 'middle'));
  if (roofs) drawRoofs(svg, roofs, x, y, lowX, highX);
  const longest = Math.max(...dots.shown.map((i) => mainTotal[i]));
  const marks = dots.shown.map((i) => {
    const size = 4 + 9 * Math.sqrt(longest > 0 ? mainTotal[i] / longest : 0);
    return drawing('circle', {class: `dot ${layers.roof[i]}`, cx: x(layers.intensity[i]), cy: y(layers.rate[i]), r: size});
  });
  svg.append(...marks);
  let chosen = null;
  const leave = () => {
    chosen?.classList.remove('chosen');
    chosen = null;
  };
  const place = (k) => [Number(marks[k].getAttribute('cx')), Number(marks[k].getAttribute('cy'))];
  const nearest = (px, py) => {
    let [best, distance] = [-1, 18];
    marks.forEach((_, k) => {
      const [mx, my] = place(k);
      const away = Math.hypot(mx - px, my - py);
      if (away < distance) [best, distance] = [k, away];
    });
    return best;
  };
  const choose = (k, event) => {
    leave();
    chosen = marks[k];
    chosen.classList.add('chosen');
    const i = dots.shown[k];
    const told = [
      ['rate', formatSi(layers.rate[i], 'FLOP/s')],
      ['bandwidth', formatSi(layers.bandwidth[i], 'B/s')],
      ['intensity', formatSi(layers.intensity[i], 'FLOP/B')],
    ];
    if (layers.roof[i]) told.push([`of the ${layers.roof[i]} roof`, formatShare(layers.roof_share[i])]);
    told.push([data.has_gpu ? 'GPU total' : 'host total', formatTime(mainTotal[i])]);
    showTip(...tipPlace(svg, ...place(k), event), pathOf(i), layers.type[i], told);
  };
  makeExplorable(svg, marks.length, nearest, choose, leave);
  byId('roofline-plot').append(svg);
}
