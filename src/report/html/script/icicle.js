// ---- Icicle: a row for each level, as wide as the time it took. On a canvas, which 5,000 layers do not slow down ----

const icicle = {
  canvas: byId('icicle'),
  measure: 'total',
  clock: data.has_gpu ? 'gpu' : 'host',
  zoom: -1, // the layer that is as wide as the page; −1 all of them
  cursor: -1, // chosen by keyboard
  under: -1, // the pointer
  cells: [],
  own: [], // time of each layer outside its children
};
const ROW = 26;
const MOST_ROWS = 18;
const rowsShown = Math.min(MOST_ROWS, layerCount === 0 ? 1 : Math.max(...level) + 1);

function icicleTimes() {
  const prefix = icicle.clock === 'gpu' ? 'gpu_' : '';
  return layers[prefix + icicle.measure];
}

// Children that took longer than their parent (on several threads, say) share its width.
function placeCells(width) {
  const times = icicleTimes();
  const least = 1.2 / Math.max(1, width);
  icicle.cells = [];
  icicle.own = times.map((ns, i) => Math.max(0, ns - children[i].reduce((sum, child) => sum + times[child], 0)));
  const place = (siblings, row, start, end, wholeNs) => {
    if (row >= rowsShown) return;
    const sum = siblings.reduce((all, i) => all + times[i], 0);
    const scale = Math.max(wholeNs, sum) > 0 ? (end - start) / Math.max(wholeNs, sum) : 0;
    let at = start;
    let narrowFrom = -1;
    const closeNarrow = () => {
      if (narrowFrom >= 0 && at > narrowFrom) icicle.cells.push({layer: -1, row, start: narrowFrom, end: at});
      narrowFrom = -1;
    };
    for (const i of siblings) {
      const size = times[i] * scale;
      if (size < least) {
        if (narrowFrom < 0 && size > 0) narrowFrom = at;
      } else {
        closeNarrow();
        icicle.cells.push({layer: i, row, start: at, end: at + size});
        place(children[i], row + 1, at, at + size, times[i]);
      }
      at += size;
    }
    closeNarrow();
  };
  const top = icicle.zoom < 0 ? roots : [icicle.zoom];
  place(top, 0, 0, 1, 0);
}

const mix = (from, to, at) => {
  const parse = (color) => [1, 3, 5].map((k) => parseInt(color.slice(k, k + 2), 16));
  const [a, b] = [parse(from), parse(to)];
  return `rgb(${a.map((value, k) => Math.round(value + at * (b[k] - value))).join(' ')})`;
};

function fitText(context, text, width) {
  if (context.measureText(text).width <= width) return text;
  let [low, high] = [0, text.length];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (context.measureText(text.slice(0, middle) + '…').width <= width) low = middle;
    else high = middle - 1;
  }
  return low > 1 ? text.slice(0, low) + '…' : '';
}

function drawIcicle() {
  const {canvas} = icicle;
  const width = canvas.parentElement.clientWidth;
  const height = rowsShown * ROW;
  const density = devicePixelRatio || 1;
  canvas.width = Math.round(width * density);
  canvas.height = Math.round(height * density);
  canvas.style.height = `${height}px`;
  placeCells(width);
  const context = canvas.getContext('2d');
  context.scale(density, density);
  context.clearRect(0, 0, width, height);
  context.direction = 'ltr';
  context.textBaseline = 'middle';
  context.font = '12.5px system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif';
  const times = icicleTimes();
  const [light, deep] = [colorOf(`--${icicle.measure}-light`), colorOf(`--${icicle.measure}-deep`)];
  const [dark, bright, muted] = [colorOf('--text'), colorOf('--cell-deep-text'), colorOf('--line')];
  const phaseColors = [colorOf('--forward'), colorOf('--backward'), colorOf('--recompute')];
  const prefix = icicle.clock === 'gpu' ? 'gpu_' : '';
  const phases = [layers[prefix + 'forward'], layers[prefix + 'backward'], layers[prefix + 'recompute']];
  const most = Math.max(1, ...icicle.cells.map((cell) => (cell.layer < 0 ? 0 : icicle.own[cell.layer])));
  for (const cell of icicle.cells) {
    const [x, y] = [cell.start * width, cell.row * ROW];
    const w = (cell.end - cell.start) * width;
    const inner = Math.max(0.8, w - 1);
    if (cell.layer < 0) {
      context.fillStyle = muted;
      context.fillRect(x, y, inner, ROW - 1);
      continue;
    }
    const heat = Math.sqrt(icicle.own[cell.layer] / most);
    context.fillStyle = mix(light, deep, heat);
    context.fillRect(x, y, inner, ROW - 1);
    if (icicle.measure === 'total' && times[cell.layer] > 0) { // how it divides into forward and backward
      let at = x;
      phases.forEach((column, k) => {
        const part = (column[cell.layer] / times[cell.layer]) * inner;
        context.fillStyle = phaseColors[k];
        context.fillRect(at, y + ROW - 4, part, 3);
        at += part;
      });
    }
    if (w > 34) {
      context.fillStyle = heat > 0.6 ? bright : dark;
      const share = data.base_ns > 0 ? formatShare(times[cell.layer] / data.base_ns) : '';
      const text = layers.name[cell.layer];
      const full = `${text}  ${share}`;
      const fits = context.measureText(full).width <= w - 14;
      context.fillText(fits ? full : fitText(context, text, w - 12), x + 7, y + ROW / 2 - 1);
    }
  }
  for (const [layer, color, line] of [[icicle.under, dark, 1.5], [icicle.cursor, colorOf('--accent'), 3]]) {
    const cell = icicle.cells.find((each) => each.layer === layer && layer >= 0);
    if (!cell || (layer === icicle.cursor && document.activeElement !== canvas)) continue;
    context.strokeStyle = color;
    context.lineWidth = line;
    const half = line / 2;
    context.strokeRect(cell.start * width + half, cell.row * ROW + half,
      Math.max(1, (cell.end - cell.start) * width - 1 - line), ROW - 1 - line);
  }
}

function drawCrumbs() {
  const above = [];
  for (let i = icicle.zoom; i >= 0; i = layers.parent[i]) above.unshift(i);
  const crumbs = byId('crumbs');
  crumbs.replaceChildren();
  const add = (text, layer, last) => {
    const shown = element(last ? 'strong' : 'button', last ? {class: 'name'} : {type: 'button', class: 'name'}, text);
    if (!last) shown.addEventListener('click', () => zoomTo(layer));
    crumbs.append(shown);
    if (!last) crumbs.append('›');
  };
  add('All layers', -1, above.length === 0);
  above.forEach((i, k) => add(layers.name[i], i, k + 1 === above.length));
}

function zoomTo(layer) {
  const from = icicle.zoom;
  icicle.zoom = layer;
  icicle.under = -1;
  icicle.cursor = layer >= 0 ? layer : from >= 0 ? from : roots[0] ?? -1;
  hideTip();
  drawCrumbs();
  drawIcicle();
}

function cellAt(event) {
  const box = icicle.canvas.getBoundingClientRect();
  const at = (event.clientX - box.left) / box.width;
  const row = Math.floor((event.clientY - box.top) / ROW);
  return icicle.cells.find((cell) => cell.layer >= 0 && cell.row === row && cell.start <= at && at < cell.end);
}

function chooseCell(layer) {
  icicle.cursor = layer;
  drawIcicle();
  const cell = icicle.cells.find((each) => each.layer === layer);
  if (!cell) return;
  const box = icicle.canvas.getBoundingClientRect();
  showLayerTip(box.left + cell.start * box.width, box.top + (cell.row + 1) * ROW - 8, layer);
  byId('icicle-live').textContent =
    `${pathOf(layer)}, ${layers.type[layer]}: ` + layerRows(layer).map((row) => row.join(' ')).join(', ');
}

function icicleKey(event) {
  const shown = icicle.cells.filter((cell) => cell.layer >= 0);
  if (shown.length === 0) return;
  const now = shown.find((cell) => cell.layer === icicle.cursor) ?? shown[0];
  const row = shown.filter((cell) => cell.row === now.row).sort((a, b) => a.start - b.start);
  const at = row.indexOf(now);
  const moves = {
    ArrowRight: () => row[at + 1],
    ArrowLeft: () => row[at - 1],
    ArrowDown: () => shown.find((cell) => layers.parent[cell.layer] === now.layer),
    ArrowUp: () => shown.find((cell) => cell.layer === layers.parent[now.layer]),
    Home: () => row[0],
    End: () => row[row.length - 1],
  };
  if (event.key in moves) {
    const to = moves[event.key]();
    chooseCell((to ?? now).layer);
  } else if (event.key === 'Enter' || event.key === ' ') {
    zoomTo(now.layer === icicle.zoom ? layers.parent[now.layer] : now.layer);
    chooseCell(now.layer);
  } else if ((event.key === 'Escape' || event.key === 'Backspace') && icicle.zoom >= 0) {
    zoomTo(layers.parent[icicle.zoom]);
  } else {
    return;
  }
  event.preventDefault();
}

function sayIcicle() {
  if (!isTimed) {
    byId('icicle-say').textContent = data.summary
      ? 'This is a summary of a model, which is of one call: times are of runs.'
      : 'No layer ran while recording, so there is nothing to draw.';
    return;
  }
  const clock = icicle.clock !== 'gpu' ? 'the host’s time'
    : data.gpu_by_events ? 'the GPU’s time by CUDA events' : 'the time in which the GPU was busy with it';
  const measure = {total: 'forward, backward and recompute', forward: 'forward', backward: 'backward'}[icicle.measure];
  byId('icicle-say').textContent =
    `Width: ${clock}, ${measure}, per step. Stronger colour: more of it outside the layers below. ` +
    (icicle.measure === 'total' ? 'The strip below each: forward, then backward, then recompute. ' : '') +
    'Click or Enter: zoom; arrow keys: move; Escape: back.';
}

function startIcicle() {
  const redraw = () => {
    sayIcicle();
    drawIcicle();
  };
  sayIcicle();
  if (!isTimed) {
    byId('icicle-frame').remove();
    return;
  }
  choice(byId('measure'), [['total', 'Total'], ['forward', 'Forward'], ['backward', 'Backward']], 'total', (value) => {
    icicle.measure = value;
    redraw();
  });
  if (data.has_gpu) {
    choice(byId('clock'), [['gpu', 'GPU'], ['host', 'Host']], 'gpu', (value) => {
      icicle.clock = value;
      redraw();
    });
  }
  const {canvas} = icicle;
  canvas.addEventListener('mousemove', (event) => {
    const layer = cellAt(event)?.layer ?? -1;
    if (layer !== icicle.under) {
      icicle.under = layer;
      drawIcicle();
    }
    if (layer >= 0) showLayerTip(event.clientX, event.clientY, layer);
    else hideTip();
  });
  canvas.addEventListener('mouseleave', () => {
    icicle.under = -1;
    hideTip();
    drawIcicle();
  });
  canvas.addEventListener('click', (event) => {
    const layer = cellAt(event)?.layer ?? -1;
    if (layer >= 0) zoomTo(layer === icicle.zoom ? layers.parent[layer] : layer);
  });
  canvas.addEventListener('keydown', icicleKey);
  canvas.addEventListener('focus', drawIcicle);
  canvas.addEventListener('blur', () => {
    hideTip();
    drawIcicle();
  });
  icicle.cursor = roots[0] ?? -1;
  themeChanged.push(drawIcicle);
  addEventListener('resize', drawIcicle);
  drawCrumbs();
}
