// ---- Steps: a bar each, by phase ----

const MOST_BARS = 290;

// Of very many steps, as many as it takes share a bar: their mean.
function stepBars() {
  const each = Math.max(1, Math.ceil(data.steps.length / MOST_BARS));
  const bars = [];
  for (let from = 0; from < data.steps.length; from += each) {
    const group = data.steps.slice(from, from + each);
    const mean = (pick) => group.reduce((sum, step) => sum + pick(step), 0) / group.length;
    const phases = data.phases.map((_, phase) => mean((step) => step.phases[phase]));
    const rest = mean((step) => step.wall) - phases.reduce((sum, ns) => sum + ns, 0);
    phases[phases.length - 1] += Math.max(0, rest); // what no phase claims is other
    bars.push({
      first: group[0].index,
      last: group[group.length - 1].index,
      wall: mean((step) => step.wall),
      busy: group[0].busy === undefined ? undefined : mean((step) => step.busy ?? 0),
      phases,
    });
  }
  return {bars, each};
}

function startSteps() {
  if (data.steps.length === 0 || data.summary) {
    byId('steps-say').textContent = data.summary ? 'A summary has no steps.' : 'No step was recorded.';
    return;
  }
  const {bars, each} = stepBars();
  byId('steps-say').textContent =
    `Wall time of each recorded step by phase, on the thread that steps: ${formatTime(data.step.mean)}` +
    (data.step.count > 1 ? ` on average, ${formatTime(data.step.min)} to ${formatTime(data.step.max)}.` : '.') +
    (each > 1 ? ` Each bar is the mean of ${each} steps.` : '');
  const [height, left, right, top, bottom] = [230, 78, 10, 12, 34];
  const svg = svgOf(height, 'Wall time of the steps, by phase');
  const most = Math.max(...bars.map((bar) => bar.wall));
  const y = (ns) => height - bottom - (ns / most) * (height - top - bottom);
  for (const tick of ticks(most, 4)) {
    svg.append(drawing('line', {class: 'grid', x1: left, x2: PLOT_WIDTH - right, y1: y(tick), y2: y(tick)}));
    svg.append(text(left - 10, y(tick) + 4, plain(formatTime(tick)), 'end'));
  }
  const pitch = Math.min(64, (PLOT_WIDTH - left - right) / bars.length);
  const wide = Math.max(1, pitch * (pitch > 8 ? 0.72 : 0.9));
  const x = (k) => left + 6 + k * pitch;
  const cursor = drawing('rect', {class: 'bar-cursor', y: top, height: height - top - bottom, width: pitch, visibility: 'hidden'});
  svg.append(cursor);
  bars.forEach((bar, k) => {
    let at = 0;
    bar.phases.forEach((ns, phase) => {
      if (ns <= 0) return;
      const [low, high] = [y(at), y(at + ns)];
      svg.append(drawing('rect', {class: `p${phase}`, x: x(k), y: high, width: wide, height: Math.max(0, low - high)}));
      at += ns;
    });
  });
  const every = Math.max(1, Math.ceil(44 / pitch));
  bars.forEach((bar, k) => {
    if (k % every === 0) svg.append(text(x(k) + wide / 2, height - 14, formatCount(bar.first), 'middle'));
  });
  svg.append(text(left - 10, height - 14, 'step', 'end'));
  const nearest = (px) => {
    const k = Math.floor((px - x(0)) / pitch);
    return k >= 0 && k < bars.length ? k : -1;
  };
  const choose = (k, event) => {
    const bar = bars[k];
    cursor.setAttribute('x', x(k) - (pitch - wide) / 2);
    cursor.setAttribute('visibility', 'visible');
    const told = [['wall time', formatTime(bar.wall)]];
    bar.phases.forEach((ns, phase) => ns > 0 && told.push([data.phases[phase], `${formatTime(ns)} (${formatShare(ns / bar.wall)})`]));
    if (bar.busy !== undefined) told.push(['GPU busy', `${formatTime(bar.busy)} (${formatShare(bar.busy / bar.wall)})`]);
    const head = bar.first === bar.last ? `Step ${formatCount(bar.first)}` : `Steps ${formatCount(bar.first)}–${formatCount(bar.last)}, mean`;
    showTip(...tipPlace(svg, x(k), y(bar.wall), event), head, '', told);
  };
  makeExplorable(svg, bars.length, nearest, choose, () => cursor.setAttribute('visibility', 'hidden'));
  const used = data.phases.map((name, phase) => [phase, name]).filter(([phase]) => bars.some((bar) => bar.phases[phase] > 0));
  byId('steps-plot').append(svg, legend(used));
}
