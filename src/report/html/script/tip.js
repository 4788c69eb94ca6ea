// ---- One box that tells of what is under the pointer or chosen by keyboard ----

const tip = byId('tip');

function showTip(x, y, head, of, rows) {
  tip.replaceChildren(element('b', {}, head));
  if (of) tip.append(element('span', {class: 'of'}, of));
  const list = element('dl');
  for (const [name, value] of rows) list.append(element('dt', {}, name), element('dd', {}, value));
  tip.append(list);
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  const left = x + 16 + box.width > innerWidth ? x - 16 - box.width : x + 16;
  const top = y + 18 + box.height > innerHeight ? y - 12 - box.height : y + 18;
  tip.style.left = `${Math.max(4, left)}px`;
  tip.style.top = `${Math.max(4, top)}px`;
}

const hideTip = () => {
  tip.hidden = true;
};

// What there is to say of a layer.
function layerRows(i) {
  const rows = [];
  const add = (name, value) => value !== '' && rows.push([name, value]);
  const ofStep = (ns) => (data.base_ns > 0 ? ` (${formatShare(ns / data.base_ns)} of the step)` : '');
  if (!layers.ran[i]) return data.summary ? [['parameters', formatCount(layers.params[i])]] : [['', 'not run']];
  if (data.has_gpu) {
    add('GPU forward', formatTime(layers.gpu_forward[i]));
    add('GPU backward', formatTime(layers.gpu_backward[i]));
    add('GPU total', formatTime(layers.gpu_total[i]) + ofStep(layers.gpu_total[i]));
  }
  add('host forward', formatTime(layers.forward[i]));
  add('host backward', formatTime(layers.backward[i]));
  if (layers.recompute[i] > 0) add('host recompute', formatTime(layers.recompute[i]));
  add('host total', formatTime(layers.total[i]) + (data.has_gpu ? '' : ofStep(layers.total[i])));
  add('calls per step', formatCount(layers.calls[i]));
  if (layers.params[i] > 0) add('parameters', formatSi(layers.params[i], ''));
  if (layers.flops[i] > 0) add('FLOPs per step', formatSi(layers.flops[i], 'FLOP'));
  if (layers.rate[i] > 0) add('rate', formatSi(layers.rate[i], 'FLOP/s'));
  if (layers.roof[i]) add(`of the ${layers.roof[i]} roof`, formatShare(layers.roof_share[i]));
  if (layers.peak[i] > 0) add('memory peak', formatBytes(layers.peak[i]));
  return rows;
}

const showLayerTip = (x, y, i) =>
  showTip(x, y, pathOf(i), [layers.type[i], layers.note[i]].filter(Boolean).join(' · '), layerRows(i));
