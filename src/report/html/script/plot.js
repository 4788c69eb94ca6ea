// ---- What the plots have in common ----

const PLOT_WIDTH = 1160;

const svgOf = (height, label) =>
  drawing('svg', {viewBox: `0 0 ${PLOT_WIDTH} ${height}`, width: PLOT_WIDTH, height, role: 'application', tabindex: 0, 'aria-label': label});

const text = (x, y, content, anchor = 'start', attributes = {}) =>
  drawing('text', {x, y, 'text-anchor': anchor, ...attributes}, content);

// About `most` round values from 0 to the top. Bytes are round in powers of two.
function ticks(top, most, isBytes = false) {
  if (!(top > 0)) return [0];
  let step = 1;
  if (isBytes) {
    step = 2 ** Math.max(0, Math.ceil(Math.log2(top / most)));
  } else {
    const power = 10 ** Math.floor(Math.log10(top / most));
    step = power * ([1, 2, 5].find((factor) => power * factor * most >= top) ?? 10);
  }
  const all = [];
  for (let value = 0; value <= top * 1.0001; value += step) all.push(value);
  return all;
}

// "5 ms" rather than "5.00 ms": a tick is round.
const plain = (figure) => figure.replace(/\.0+ /, ' ').replace(/(\.\d*?)0+ /, '$1 ');

function legend(entries) {
  const list = element('ul', {class: 'legend'});
  for (const [phase, name] of entries) {
    const patch = drawing('svg', {viewBox: '0 0 12 12', 'aria-hidden': 'true'}, drawing('rect', {width: 12, height: 12, class: `p${phase}`}));
    list.append(element('li', {}, patch, name));
  }
  return list;
}

// One stop for the Tab key; arrows go from one thing to the next, the pointer to any.
function makeExplorable(svg, size, nearest, choose, leave) {
  let at = -1;
  const go = (to, event) => {
    at = Math.max(0, Math.min(size - 1, to));
    choose(at, event);
  };
  svg.addEventListener('keydown', (event) => {
    const jumps = {ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1, PageDown: 20, PageUp: -20, Home: -Infinity, End: Infinity};
    if (!(event.key in jumps) || size === 0) return;
    event.preventDefault();
    go(at < 0 ? 0 : at + jumps[event.key]);
  });
  svg.addEventListener('mousemove', (event) => {
    const box = svg.getBoundingClientRect();
    const scale = PLOT_WIDTH / box.width;
    const found = nearest((event.clientX - box.left) * scale, (event.clientY - box.top) * scale);
    if (found >= 0) go(found, event);
    else out();
  });
  const out = () => {
    hideTip();
    leave();
  };
  svg.addEventListener('mouseleave', out);
  svg.addEventListener('blur', out);
}

// Where the tip goes for something at x, y of a drawing: the pointer, if it was that.
function tipPlace(svg, x, y, event) {
  if (event) return [event.clientX, event.clientY];
  const box = svg.getBoundingClientRect();
  return [box.left + (x / PLOT_WIDTH) * box.width, box.top + (y / PLOT_WIDTH) * box.width];
}
