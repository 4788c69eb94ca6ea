// ---- The head of the page, and everything in its place ----

function startHead() {
  document.title = `${data.title} · layertrace`;
  byId('title').append(element('span', {class: 'name'}, data.title));
  byId('lead').textContent = data.steps_sentence;
  for (const [sentence, tone] of data.warnings) byId('warnings').append(element('p', {class: `note ${tone} name`}, sentence));
  const figures = byId('figures');
  const add = (name, value, small) => {
    const box = element('dd', {}, value);
    if (small) box.append(element('small', {}, small));
    figures.append(element('div', {}, element('dt', {}, name), box));
  };
  const ofRoots = (column) => roots.reduce((sum, i) => sum + column[i], 0);
  const ofStep = (ns) => (data.base_ns > 0 ? `${formatShare(ns / data.base_ns)} of the step` : '');
  if (data.step.count > 0 && !data.summary) add('Step', formatTime(data.step.mean), count(data.step.count, 'step recorded', 'steps, mean'));
  if (!data.summary && layerCount > 0) {
    const [prefix, clock] = data.has_gpu ? ['gpu_', 'GPU '] : ['', ''];
    for (const measure of ['forward', 'backward']) {
      const ns = ofRoots(layers[prefix + measure]);
      const name = clock ? `${clock}${measure}` : measure[0].toUpperCase() + measure.slice(1);
      if (ns > 0) add(name, formatTime(ns), ofStep(ns));
    }
  }
  const busy = data.steps.filter((step) => step.busy !== undefined);
  if (busy.length > 0) {
    const share = busy.reduce((sum, step) => sum + step.busy / Math.max(1, step.wall), 0) / busy.length;
    add('GPU busy', formatShare(share), 'of the step, mean');
  }
  const flops = ofRoots(layers.flops);
  if (flops > 0) add('FLOPs', formatSi(flops, ''), 'FLOP per step, in layers');
  if (data.mfu > 0) add('MFU', formatShare(data.mfu), 'of the device’s peak');
  const params = ofRoots(layers.params);
  if (params > 0) add('Parameters', formatSi(params, ''), 'numbers, in all');
  const memory = data.memory[data.memory.length - 1];
  if (memory) add('Memory peak', formatBytes(memory.peak), `${memory.device}, in a step`);
  if (data.ledger.has_activities && !data.summary) add('Attributed', formatShare(data.ledger.attributed_share), 'of activity time');
  for (const metric of data.metrics) add(metric.name, `${metric.value} ${metric.unit}`.trim(), metric.description || 'metric of the run');
}

function startFacts() {
  for (const [name, value] of data.facts) byId('facts').append(element('dt', {}, name), element('dd', {}, value));
}

startHead();
startIcicle();
startTable();
startSteps();
startRoofline();
startMemory();
startLedger();
startFacts();
startPerfetto();
startTheme(); // draws what needs colours, and shows the page
requestAnimationFrame(() => performance.mark('drawn'));
