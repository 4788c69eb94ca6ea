// ---- The ledger: how much of the time has a layer, and why the rest has none ----

function causesTable(title, causes, hasTime) {
  const head = element('tr', {}, element('th', {scope: 'col'}, title), element('th', {scope: 'col'}, 'Count'));
  if (hasTime) head.append(element('th', {scope: 'col'}, 'Time'), element('th', {scope: 'col'}, 'Share of activity time'));
  head.append(element('th', {scope: 'col'}, 'Which'));
  const body = element('tbody');
  for (const {cause, count: n, ns, names} of causes) {
    const line = element('tr', {}, element('td', {class: 'name'}, cause), element('td', {}, formatCount(n)));
    if (hasTime) {
      const whole = data.ledger.activity_ns;
      line.append(element('td', {}, formatTime(ns)), element('td', {}, formatShare(whole > 0 ? ns / whole : 0)));
    }
    line.append(element('td', {class: 'name'}, names.map(([name, times]) => `${name} ×${formatCount(times)}`).join(', ')));
    body.append(line);
  }
  return element('div', {class: 'sideways'}, element('table', {class: 'causes'}, element('thead', {}, head), body));
}

function startLedger() {
  const {ledger} = data;
  const box = byId('ledger-body');
  const list = element('ul', {class: 'ledger'});
  for (const [sentence, tone] of ledger.sentences) list.append(element('li', {class: `${tone} name`}, sentence));
  box.append(list);
  if (ledger.causes.length > 0) box.append(causesTable('Activities without a layer', ledger.causes, true));
  if (ledger.node_causes.length > 0) box.append(causesTable('Autograd nodes without a layer', ledger.node_causes, false));
  for (const note of ledger.notes) box.append(element('p', {class: 'note warm name'}, note));
}
