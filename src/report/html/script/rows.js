// ---- Which layers the table shows, and in what order ----

const rows = {
  open: new Array(layerCount).fill(false),
  sort: null, // a column's key; null is the order of definition
  ascending: false,
  filter: '',
  flat: false,
  shown: [], // layers, in the order of rows
};

// As deep as about fifty rows allow.
function openSome() {
  const perLevel = [];
  for (const depth of level) perLevel[depth] = (perLevel[depth] ?? 0) + 1;
  let sum = perLevel[0] ?? 0;
  for (let depth = 0; depth + 1 < perLevel.length; depth++) {
    sum += perLevel[depth + 1];
    if (sum > 50 && depth > 0) break;
    for (let i = 0; i < layerCount; i++) if (level[i] === depth) rows.open[i] = true;
  }
}

function inOrder(siblings) {
  if (rows.sort === null) return siblings;
  const column = layers[rows.sort];
  const sign = rows.ascending ? 1 : -1;
  const compare = typeof column[0] === 'string'
    ? (a, b) => sign * column[a].localeCompare(column[b], 'en', {numeric: true})
    : (a, b) => sign * (column[a] - column[b]);
  return [...siblings].sort((a, b) => compare(a, b) || a - b);
}

// Layers that match, and those above them; null where nothing is asked for.
function matching() {
  const asked = rows.filter.trim().toLowerCase();
  if (asked === '') return null;
  const match = layers.path.map((path, i) =>
    `${path}\n${layers.name[i]}\n${layers.type[i]}`.toLowerCase().includes(asked));
  const kept = [...match];
  for (let i = layerCount - 1; i >= 0; i--) if (kept[i] && layers.parent[i] >= 0) kept[layers.parent[i]] = true;
  return {match, kept};
}

function findRows() {
  const found = matching();
  rows.matches = found ? found.match.filter(Boolean).length : layerCount;
  rows.filtered = found !== null;
  rows.shown = [];
  if (rows.flat) {
    const all = layers.path.map((_, i) => i).filter((i) => !found || found.match[i]);
    rows.shown = inOrder(all);
    return;
  }
  const add = (siblings) => {
    for (const i of inOrder(siblings)) {
      if (found && !found.kept[i]) continue;
      rows.shown.push(i);
      if (rows.open[i] || found) add(children[i]);
    }
  };
  add(roots);
}
