// ---- The run, and the tree of its layers ----

const data = JSON.parse(document.getElementById('data').textContent);
const layers = data.layers;
const layerCount = layers.path.length;
const children = Array.from({length: layerCount}, () => []);
const roots = [];
const level = new Array(layerCount).fill(0);
for (let i = 0; i < layerCount; i++) { // parents come before their children
  const parent = layers.parent[i];
  if (parent < 0) {
    roots.push(i);
  } else {
    children[parent].push(i);
    level[i] = level[parent] + 1;
  }
}

// Layers that did all of their work themselves: of those below them none was called. An attention
// whose products are one operator has a projection that is a layer, and never runs.
const calledBelow = new Array(layerCount).fill(false);
for (let i = layerCount - 1; i >= 0; i--) {
  if (layers.parent[i] >= 0 && (layers.calls[i] > 0 || calledBelow[i])) calledBelow[layers.parent[i]] = true;
}
const isInnermost = (i) => !calledBelow[i] && (layers.parent[i] < 0 || calledBelow[layers.parent[i]]);

const sumOf = (...columns) => layers.path.map((_, i) => columns.reduce((sum, column) => sum + column[i], 0));
layers.total = sumOf(layers.forward, layers.backward, layers.recompute);
if (data.has_gpu) {
  layers.gpu_total = sumOf(layers.gpu_forward, layers.gpu_backward, layers.gpu_recompute);
}
const mainTotal = data.has_gpu ? layers.gpu_total : layers.total;
layers.share = mainTotal.map((ns) => (data.base_ns > 0 ? ns / data.base_ns : 0));

const pathOf = (i) => layers.path[i] || layers.name[i];
const placeOf = (layer, phase) => (layer < 0 ? `(${data.phases[phase]})` : pathOf(layer));
const hasAny = (column) => column.some((value) => value > 0);
const isTimed = !data.summary && hasAny(layers.total); // a summary's one call is no measurement
