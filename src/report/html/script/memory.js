// ---- Memory in use over the counted step with the highest peak ----

function memoryPlot(device) {
  const {ns, bytes, phase} = device;
  const [height, left, right, top, bottom, strip] = [250, 96, 10, 22, 34, 8];
  const svg = svgOf(height, `Memory in use, ${device.device}`);
  const end = Math.max(1, ns[ns.length - 1]);
  const most = Math.max(1, device.peak, ...bytes);
  const least = Math.min(0, ...bytes);
  const floor = height - bottom - strip - 4;
  const x = (at) => left + (at / end) * (PLOT_WIDTH - left - right);
  const y = (value) => floor - ((value - least) / (most - least)) * (floor - top);
  for (const tick of ticks(most, 4, true)) {
    svg.append(drawing('line', {class: 'grid', x1: left, x2: PLOT_WIDTH - right, y1: y(tick), y2: y(tick)}));
    svg.append(text(left - 10, y(tick) + 4, plain(formatBytes(tick)), 'end'));
  }
  for (const tick of ticks(end, 6)) svg.append(text(x(tick), height - 8, plain(formatTime(tick)), tick === 0 ? 'start' : 'middle'));
  let path = `M${x(0)} ${y(0)}`;
  ns.forEach((at, k) => {
    path += `H${x(at).toFixed(1)}V${y(bytes[k]).toFixed(1)}`;
  });
  path += `H${x(end)}`;
  svg.append(drawing('path', {class: 'area', d: `${path}V${y(0)}H${x(0)}Z`}), drawing('path', {class: 'curve', d: path}));
  for (let k = 0; k < ns.length;) { // below it, the phase that took or gave back
    let last = k;
    while (last + 1 < ns.length && phase[last + 1] === phase[k]) last++;
    const to = last + 1 < ns.length ? ns[last + 1] : end;
    svg.append(drawing('rect', {class: `p${phase[k]}`, x: x(ns[k]), y: floor + 4, width: Math.max(0.5, x(to) - x(ns[k])), height: strip}));
    k = last + 1;
  }
  const peakX = x(device.peak_ns);
  svg.append(drawing('circle', {class: 'mark-dot', cx: peakX, cy: y(device.peak), r: 4}));
  const anchor = peakX > PLOT_WIDTH * 0.6 ? 'end' : 'start';
  const where = `peak ${formatBytes(device.peak)}, ${device.peak_layer < 0 ? '' : `${pathOf(device.peak_layer)} `}(${data.phases[device.peak_phase]})`;
  svg.append(text(peakX + (anchor === 'end' ? -9 : 9), y(device.peak) - 6, where, anchor, {class: 'strong'}));
  const cursor = drawing('line', {class: 'cursor', y1: top, y2: floor, visibility: 'hidden'});
  svg.append(cursor);
  const nearest = (px) => {
    const at = ((px - left) / (PLOT_WIDTH - left - right)) * end;
    if (at < 0 || at > end) return -1;
    let [low, high] = [0, ns.length - 1];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (ns[middle] <= at) low = middle;
      else high = middle - 1;
    }
    return low;
  };
  const choose = (k, event) => {
    cursor.setAttribute('visibility', 'visible');
    cursor.setAttribute('x1', x(ns[k]));
    cursor.setAttribute('x2', x(ns[k]));
    const told = [['in use', formatBytes(bytes[k])], ['after the step’s start', formatTime(ns[k])], ['phase', data.phases[phase[k]]]];
    showTip(...tipPlace(svg, x(ns[k]), y(bytes[k]), event), placeOf(device.layer[k], phase[k]), '', told);
  };
  makeExplorable(svg, ns.length, nearest, choose, () => cursor.setAttribute('visibility', 'hidden'));
  return svg;
}

function startMemory() {
  if (data.memory.length === 0) {
    byId('memory-say').textContent = 'No memory was told of: it is recorded while operators are counted.';
    return;
  }
  byId('memory-say').textContent =
    'What the allocator says is in use, above what was when the step’s counting began, in the counted step with the highest peak. The strip below: the phase that took or gave back.';
  const box = byId('memory-plot');
  const used = new Set();
  for (const device of data.memory) {
    if (data.memory.length > 1) box.append(element('h3', {class: 'device-head'}, device.device === 'host' ? 'Host' : device.device));
    box.append(memoryPlot(device));
    device.phase.forEach((phase) => used.add(phase));
  }
  box.append(legend([...used].sort().map((phase) => [phase, data.phases[phase]])));
}
