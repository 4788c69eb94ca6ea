// ---- Roofline: FLOP per byte against FLOP/s, under what the device can do ----

const MOST_DOTS = 400;

// Innermost layers as a whole, and of others what they computed themselves.
function rooflineDots() {
  const whole = (i) => ({
    name: pathOf(i), type: layers.type[i], rate: layers.rate[i], bandwidth: layers.bandwidth[i],
    intensity: layers.intensity[i], roof: layers.roof[i], roof_share: layers.roof_share[i], ns: mainTotal[i],
  });
  const own = data.own.map((each) => ({...each, name: `${pathOf(each.layer)}, its own`, type: layers.type[each.layer]}));
  const innermost = layers.path.map((_, i) => i).filter(isInnermost).map(whole);
  const dots = [...innermost, ...own].filter((dot) => dot.intensity > 0 && dot.rate > 0).sort((a, b) => b.ns - a.ns);
  return {shown: dots.slice(0, MOST_DOTS), of: dots.length};
}

function sayRoofline(dots, roofs) {
  const say = byId('roofline-say');
  if (dots.of === 0) {
    say.textContent = 'No layer has both FLOPs and a time, so there is nothing to place: operators are counted unless counting is off.';
    return;
  }
  const of = dots.of > dots.shown.length ? `, the ${dots.shown.length} of ${formatCount(dots.of)} that took longest` : '';
  const origin = roofs && (roofs.source.startsWith(roofs.origin) ? roofs.source : [roofs.origin, roofs.source].filter(Boolean).join(': '));
  const by = roofs
    ? ` Roofs: ${roofs.name} (${origin}).`
    : ' The device’s peaks are not known, so no roof is drawn.';
  say.textContent = `Each layer by what it computes without the layers below it${of}: forward and backward, over the time in which the device was busy with them; larger, more time. Filled: limited by compute; hollow: by memory.${by}`;
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
  const dots = rooflineDots();
  if (data.summary) {
    byId('roofline-say').textContent = 'A summary has no times, so no rates.';
    return;
  }
  sayRoofline(dots, roofs);
  if (dots.of === 0) return;
  const [height, left, right, top, bottom] = [420, 104, 24, 26, 46];
  const xs = dots.shown.map((dot) => dot.intensity);
  const ys = dots.shown.map((dot) => dot.rate);
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
  const longest = Math.max(...dots.shown.map((dot) => dot.ns));
  const marks = dots.shown.map((dot) => {
    const size = 4 + 9 * Math.sqrt(longest > 0 ? dot.ns / longest : 0);
    return drawing('circle', {class: `dot ${dot.roof}`, cx: x(dot.intensity), cy: y(dot.rate), r: size});
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
    const dot = dots.shown[k];
    const told = [
      ['rate', formatSi(dot.rate, 'FLOP/s')],
      ['bandwidth', formatSi(dot.bandwidth, 'B/s')],
      ['intensity', formatSi(dot.intensity, 'FLOP/B')],
    ];
    if (dot.roof) told.push([`of the ${dot.roof} roof`, formatShare(dot.roof_share)]);
    told.push([data.has_gpu ? 'GPU time' : 'host time', formatTime(dot.ns)]);
    showTip(...tipPlace(svg, ...place(k), event), dot.name, dot.type, told);
  };
  makeExplorable(svg, marks.length, nearest, choose, leave);
  byId('roofline-plot').append(svg);
}
