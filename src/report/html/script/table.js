// ---- The table of layers. Only the rows in view are in the document ----

const ROW_HEIGHT = 30;
const MARGIN = 12; // rows kept on either side of those in view
const MOST_HEIGHT = 560; // of the table, as in the style sheet
const MOST_PRINTED = 400;
const table = {box: byId('table-scroll'), body: null, active: 0, columns: [], first: -1, last: -1, printed: false};

const timeCell = (ns) => (ns > 0 ? formatTime(ns) : '–');

// Columns that have something to say. Widths are fixed, so that nothing moves while one scrolls.
function tableColumns() {
  const gpu = data.has_gpu;
  const counted = hasAny(layers.flops) || hasAny(layers.bytes);
  const all = [
    {key: 'name', title: 'Layer', width: 250, text: true},
    {key: 'type', title: 'Type', width: 132, text: true},
    {key: 'share', title: 'Of the step', width: 132, show: (v) => (v > 0 ? formatShare(v) : '–'), meter: true},
    {key: 'gpu_forward', title: 'GPU forward', width: 122, show: timeCell, when: gpu},
    {key: 'gpu_backward', title: 'GPU backward', width: 132, show: timeCell, when: gpu},
    {key: 'forward', title: gpu ? 'Host forward' : 'Forward', width: gpu ? 124 : 112, show: timeCell},
    {key: 'backward', title: gpu ? 'Host backward' : 'Backward', width: gpu ? 136 : 112, show: timeCell},
    {key: 'total', title: gpu ? 'Host total' : 'Total', width: 108, show: timeCell},
    {key: 'self', title: 'Host self', width: 102, show: timeCell},
    {key: 'calls', title: 'Calls', width: 78, show: formatCount},
    {key: 'kernels', title: gpu ? 'Kernels' : 'Operators', width: 96, show: formatCount, when: hasAny(layers.kernels)},
    {key: 'params', title: 'Parameters', width: 112, show: (v) => formatSi(v, ''), when: hasAny(layers.params)},
    {key: 'flops', title: 'FLOPs', width: 112, show: (v) => formatSi(v, 'FLOP'), when: counted},
    {key: 'rate', title: 'FLOP/s', width: 124, show: (v) => (v > 0 ? formatSi(v, 'FLOP/s') : '–'), when: hasAny(layers.rate)},
    {key: 'roof_share', title: 'Of roof', width: 92, show: (v) => (v > 0 ? formatShare(v) : '–'), when: hasAny(layers.roof_share)},
    {key: 'peak', title: 'Memory peak', width: 118, show: (v) => (v > 0 ? formatBytes(v) : '–'), when: hasAny(layers.peak)},
  ];
  const timed = new Set(['share', 'forward', 'backward', 'total', 'self', 'rate', 'roof_share']);
  return all.filter((column) => (column.when ?? true) && !(data.summary && timed.has(column.key)));
}

function tableHead() {
  const group = element('colgroup');
  const line = element('tr', {role: 'row', 'aria-rowindex': 1});
  for (const column of table.columns) {
    const col = element('col');
    col.style.width = `${column.width}px`;
    group.append(col);
    const button = element('button', {type: 'button'}, column.title);
    button.addEventListener('click', () => sortBy(column));
    const cell = element('th', {scope: 'col', role: 'columnheader', 'aria-sort': 'none'}, button);
    if (column.text) cell.className = 'text';
    column.head = cell;
    line.append(cell);
  }
  const whole = byId('table');
  whole.style.minWidth = `${table.columns.reduce((sum, column) => sum + column.width, 0)}px`;
  table.body = element('tbody', {role: 'rowgroup'});
  whole.append(group, element('thead', {role: 'rowgroup'}, line), table.body);
}

// Down, up, and back to the order of definition; names up first.
function sortBy(column) {
  const first = column.text === true;
  if (rows.sort !== column.key) {
    rows.sort = column.key;
    rows.ascending = first;
  } else if (rows.ascending === first) {
    rows.ascending = !first;
  } else {
    rows.sort = null;
  }
  for (const each of table.columns) {
    const state = each.key !== rows.sort ? 'none' : rows.ascending ? 'ascending' : 'descending';
    each.head.setAttribute('aria-sort', state);
  }
  refreshTable();
}

function nameCell(i) {
  const cell = element('th', {scope: 'row', role: 'rowheader'});
  if (!rows.flat) cell.style.paddingLeft = `${10 + level[i] * 16}px`;
  const foldable = children[i].length > 0 && !rows.flat;
  const mark = element('span', {class: 'fold', 'aria-hidden': 'true'}, foldable ? (isOpen(i) ? '▾' : '▸') : '');
  if (!rows.flat) cell.append(mark);
  cell.append(element('span', {class: 'name'}, rows.flat ? pathOf(i) : layers.name[i]));
  if (layers.note[i]) cell.append(element('span', {class: 'aside'}, layers.note[i]));
  cell.title = pathOf(i);
  return cell;
}

const isOpen = (i) => rows.open[i] || rows.filtered;

function rowOf(i, place) {
  const line = element('tr', {
    role: 'row',
    'aria-rowindex': place + 2,
    'aria-level': rows.flat ? 1 : level[i] + 1,
    tabindex: place === table.active ? 0 : -1,
    'data-place': place,
  });
  if (children[i].length > 0 && !rows.flat) line.setAttribute('aria-expanded', isOpen(i));
  if (!layers.ran[i] && !data.summary) line.className = 'off';
  for (const column of table.columns) {
    if (column.key === 'name') {
      line.append(nameCell(i));
      continue;
    }
    const value = layers[column.key][i];
    const cell = element('td', {role: 'gridcell'});
    if (column.text) {
      cell.className = 'text';
      cell.append(element('span', {class: 'name'}, value));
    } else {
      if (column.meter) {
        const bar = element('i');
        bar.style.width = `${Math.min(100, 100 * value)}%`;
        cell.append(element('span', {class: 'meter', 'aria-hidden': 'true'}, bar));
      }
      const text = column.show(value);
      cell.append(text);
      if (text === '–' || value === 0) cell.classList.add('zero');
    }
    line.append(cell);
  }
  return line;
}

function space(height) {
  const cell = element('td', {colspan: table.columns.length});
  cell.style.height = `${height}px`;
  return element('tr', {class: 'space', 'aria-hidden': 'true'}, cell);
}

function drawRows(first, last) {
  table.first = first;
  table.last = last;
  const lines = [];
  if (first > 0) lines.push(space(first * ROW_HEIGHT));
  for (let place = first; place < last; place++) lines.push(rowOf(rows.shown[place], place));
  if (last < rows.shown.length) lines.push(space((rows.shown.length - last) * ROW_HEIGHT));
  table.body.replaceChildren(...lines);
}

function drawTable(force = false) {
  if (table.printed) return;
  const {box} = table;
  const top = Math.floor(box.scrollTop / ROW_HEIGHT);
  const inView = Math.ceil(MOST_HEIGHT / ROW_HEIGHT);
  const first = Math.max(0, top - MARGIN);
  const last = Math.min(rows.shown.length, top + inView + MARGIN);
  const covered = table.first <= Math.max(0, top - 2) && table.last >= Math.min(rows.shown.length, top + inView + 2);
  if (!force && covered) return;
  const focused = table.body.contains(document.activeElement);
  drawRows(first, last);
  if (focused) focusRow(table.active, false);
}

function refreshTable(keep) {
  findRows();
  const at = keep === undefined ? -1 : rows.shown.indexOf(keep);
  table.active = at >= 0 ? at : Math.min(table.active, Math.max(0, rows.shown.length - 1));
  byId('table').setAttribute('aria-rowcount', rows.shown.length + 1);
  byId('table-say').textContent = tableSentence();
  drawTable(true);
}

function tableSentence() {
  if (layerCount === 0) return 'There are no layers in this run.';
  const found = rows.filtered ? `${formatCount(rows.matches)} of ${count(layerCount, 'layer', 'layers')} match. ` : `${count(layerCount, 'layer', 'layers')}. `;
  if (data.summary) return found;
  const of = data.has_gpu ? ' “Of the step” is the GPU’s total over the step’s wall time.' : '';
  return `${found}Figures are means per step, children included unless it says self.${of}`;
}

function focusRow(place, follow = true) {
  if (rows.shown.length === 0) return;
  table.active = Math.max(0, Math.min(rows.shown.length - 1, place));
  const {box} = table;
  if (follow) {
    const top = table.active * ROW_HEIGHT;
    const head = box.querySelector('thead').offsetHeight;
    if (top < box.scrollTop) box.scrollTop = top;
    const bottom = top + ROW_HEIGHT + head - box.clientHeight;
    if (bottom > box.scrollTop) box.scrollTop = bottom;
    drawTable();
  }
  for (const line of table.body.querySelectorAll('tr[data-place]')) {
    const chosen = Number(line.dataset.place) === table.active;
    line.tabIndex = chosen ? 0 : -1;
    if (chosen) line.focus({preventScroll: true});
  }
}

function setOpen(i, open) {
  rows.open[i] = open;
  refreshTable(i);
}

function tableKey(event) {
  if (!event.target.closest('tr[data-place]')) return;
  const i = rows.shown[table.active];
  const page = Math.max(1, Math.floor(table.box.clientHeight / ROW_HEIGHT) - 2);
  const foldable = children[i].length > 0 && !rows.flat && !rows.filtered;
  const jumps = {ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity};
  if (event.key in jumps) {
    focusRow(table.active + jumps[event.key]);
  } else if (event.key === 'ArrowRight' && foldable) {
    if (rows.open[i]) focusRow(table.active + 1);
    else setOpen(i, true);
  } else if (event.key === 'ArrowLeft' && !rows.flat) {
    if (foldable && rows.open[i]) setOpen(i, false);
    else if (layers.parent[i] >= 0) focusRow(rows.shown.indexOf(layers.parent[i]));
  } else if (event.key === ' ' && foldable) {
    setOpen(i, !rows.open[i]);
  } else if (event.key === 'Enter' && byId('icicle-frame')) {
    zoomTo(i);
    icicle.canvas.focus();
  } else {
    return;
  }
  event.preventDefault();
}

function tableClick(event) {
  const line = event.target.closest('tr[data-place]');
  if (!line) return;
  table.active = Number(line.dataset.place);
  const i = rows.shown[table.active];
  const foldable = children[i].length > 0 && !rows.flat && !rows.filtered;
  if (foldable && event.target.closest('th')) setOpen(i, !rows.open[i]);
  focusRow(table.active, false);
}

function startTable() {
  table.columns = tableColumns();
  openSome();
  tableHead();
  table.box.addEventListener('scroll', () => drawTable(), {passive: true});
  table.body.addEventListener('keydown', tableKey);
  table.body.addEventListener('click', tableClick);
  byId('filter').addEventListener('input', (event) => {
    rows.filter = event.target.value;
    table.box.scrollTop = 0;
    refreshTable();
  });
  choice(byId('shape'), [[false, 'Tree'], [true, 'List']], false, (flat) => {
    rows.flat = flat;
    table.box.scrollTop = 0;
    refreshTable();
  });
  byId('expand').addEventListener('click', () => {
    rows.open.fill(true);
    refreshTable();
  });
  byId('collapse').addEventListener('click', () => {
    rows.open.fill(false);
    table.box.scrollTop = 0;
    refreshTable();
  });
  addEventListener('resize', () => drawTable(true));
  addEventListener('beforeprint', () => {
    drawRows(0, Math.min(rows.shown.length, MOST_PRINTED));
    table.printed = true;
  });
  addEventListener('afterprint', () => {
    table.printed = false;
    drawTable(true);
  });
  refreshTable();
}
