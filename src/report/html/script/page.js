// ---- Building the page ----

const byId = (id) => document.getElementById(id);

// Text goes in as text: a layer may be called anything.
function element(tag, attributes = {}, ...content) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...content);
  return made;
}

function drawing(tag, attributes = {}, ...content) {
  const made = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...content);
  return made;
}

// Buttons of which one is pressed. `choices` are [value, text].
function choice(box, choices, chosen, choose) {
  for (const [value, text] of choices) {
    const button = element('button', {type: 'button', 'aria-pressed': value === chosen}, text);
    button.addEventListener('click', () => {
      for (const other of box.children) other.setAttribute('aria-pressed', other === button);
      choose(value);
    });
    box.append(button);
  }
}

const themeChanged = [];
const colorOf = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  byId('theme').textContent = theme === 'dark' ? 'Light' : 'Dark';
  for (const redraw of themeChanged) redraw();
}

function remembered(key, value) {
  try {
    if (value === undefined) return localStorage.getItem(key);
    localStorage.setItem(key, value);
  } catch {
    // a page opened from a file may have no storage
  }
  return null;
}

function startTheme() {
  const system = matchMedia('(prefers-color-scheme: dark)');
  const fitting = () => remembered('layertrace-theme') ?? (system.matches ? 'dark' : 'light');
  setTheme(fitting());
  system.addEventListener('change', () => setTheme(fitting()));
  byId('theme').addEventListener('click', () => {
    const theme = document.documentElement.dataset.theme === 'dark' ? 'light' : 'dark';
    remembered('layertrace-theme', theme);
    setTheme(theme);
  });
  addEventListener('beforeprint', () => setTheme('light'));
  addEventListener('afterprint', () => setTheme(fitting()));
}
