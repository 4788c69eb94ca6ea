// Opens a report's page from its file in headless Chromium, and uses it as people do.
//
//   node open_report.mjs --page run.html
//       [--screenshot run.png]       the whole page, light; and run-dark.png, dark
//       [--scroll]                   goes to the last row of all, and prints
//       [--use]                      sorts, folds, filters, zooms: what was seen is in the output
//       [--perfetto FILE]            presses the button, with a stand-in for Perfetto UI; FILE is chosen where the page has
//                                    no trace ("" for one that has)
//       [--ui FOLDER]                presses the button of a page with a trace; FOLDER holds a copy of the real UI
//
// Prints one JSON object: what the page shows, how long it took to its first paint, its errors, and all that it asked for
// but itself.

import {existsSync} from 'node:fs';
import path from 'node:path';
import {pathToFileURL} from 'node:url';
import {parseArgs} from 'node:util';

import {startChromium} from './chromium.mjs';

const VIEWPORT = {width: 1320, height: 900};

// The first column of the rows in the document, with what assistive technology is told of them.
const rowsOf = (page) =>
  page.$$eval('#table tbody tr[data-place]', (lines) =>
    lines.map((line) => ({
      name: line.querySelector('.name').textContent,
      path: line.querySelector('th').title,
      expanded: line.getAttribute('aria-expanded'),
      level: Number(line.getAttribute('aria-level')),
      focused: line === document.activeElement,
    })),
  );

const sortOf = (page, title) =>
  page.$$eval(
    '#table thead th',
    (heads, wanted) => heads.find((head) => head.textContent === wanted).getAttribute('aria-sort'),
    title,
  );

const header = (page, title) => page.getByRole('columnheader', {name: title, exact: true}).getByRole('button');

async function sorting(page) {
  const seen = {};
  await page.click('#collapse');
  await page.click('#expand');
  seen.before = await rowsOf(page);
  await header(page, 'Type').click(); // by mouse: up
  seen.typeUp = [await sortOf(page, 'Type'), await rowsOf(page)];
  const first = (await page.$$eval('#table thead th', (heads) => heads.map((head) => head.textContent))).find((title) =>
    title.endsWith('orward'),
  );
  seen.column = first;
  await header(page, first).focus(); // by keyboard: down, up, as defined
  await page.keyboard.press('Enter');
  seen.down = [await sortOf(page, first), await rowsOf(page)];
  await page.keyboard.press('Space');
  seen.up = [await sortOf(page, first), await rowsOf(page)];
  await page.keyboard.press('Enter');
  seen.none = [await sortOf(page, first), await rowsOf(page)];
  return seen;
}

async function folding(page) {
  const seen = {};
  await page.click('#collapse');
  seen.collapsed = await rowsOf(page);
  await page.click('#table tbody tr[data-place="0"] .fold');
  seen.byMouse = await rowsOf(page);
  await page.click('#table tbody tr[data-place="0"] .fold');
  seen.againByMouse = await rowsOf(page);
  await page.focus('#table tbody tr[data-place="0"]');
  await page.keyboard.press('ArrowRight');
  seen.byKey = await rowsOf(page);
  await page.keyboard.press('ArrowRight');
  seen.intoIt = await rowsOf(page);
  await page.keyboard.press('ArrowLeft');
  await page.keyboard.press('ArrowLeft');
  seen.againByKey = await rowsOf(page);
  return seen;
}

async function filtering(page) {
  await page.fill('#filter', 'BatchNorm');
  const seen = {rows: await rowsOf(page), says: await page.textContent('#table-say')};
  await page.fill('#filter', 'no such layer');
  seen.none = await rowsOf(page);
  await page.fill('#filter', '');
  await page.click('#shape button:has-text("List")');
  seen.list = await rowsOf(page);
  await page.click('#shape button:has-text("Tree")');
  return seen;
}

const crumbs = (page) => page.$$eval('#crumbs .name', (parts) => parts.map((part) => part.textContent));

async function zooming(page) {
  const seen = {start: await crumbs(page)};
  await page.locator('#icicle').scrollIntoViewIfNeeded();
  const box = await page.locator('#icicle').boundingBox();
  await page.mouse.move(box.x + box.width / 2, box.y + 13);
  seen.tip = await page.textContent('#tip');
  await page.mouse.click(box.x + box.width / 2, box.y + 13); // the root
  seen.clicked = await crumbs(page);
  await page.focus('#icicle');
  await page.keyboard.press('ArrowDown');
  seen.said = await page.textContent('#icicle-live');
  await page.keyboard.press('Enter');
  seen.entered = await crumbs(page);
  await page.keyboard.press('Escape');
  seen.escaped = await crumbs(page);
  await page.click('#crumbs button');
  seen.home = await crumbs(page);
  const picture = () => page.$eval('#icicle', (canvas) => canvas.toDataURL());
  const total = await picture();
  await page.click('#measure button:has-text("Backward")');
  seen.backwardDiffers = (await picture()) !== total;
  await page.click('#measure button:has-text("Total")');
  seen.clocks = await page.$$eval('#clock button', (buttons) => buttons.map((button) => button.textContent));
  return seen;
}

// What an arrow key tells of in the other drawings.
async function exploring(page) {
  const seen = {};
  for (const part of ['steps', 'roofline', 'memory']) {
    const svg = await page.$(`#${part}-plot svg[tabindex]`);
    if (!svg) continue;
    await svg.focus();
    await page.keyboard.press('ArrowRight');
    seen[part] = await page.textContent('#tip');
    await page.keyboard.press('Tab');
    seen[`${part}Left`] = await page.$eval('#tip', (tip) => tip.hidden);
  }
  return seen;
}

async function themes(page) {
  const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const seen = [await background()];
  await page.click('#theme');
  seen.push(await background());
  await page.click('#theme');
  seen.push(await background());
  return seen;
}

// Where the Tab key goes, and whether one sees it.
async function tabbing(page) {
  await page.evaluate(() => document.activeElement?.blur());
  const stops = [];
  for (let i = 0; i < 60; i++) {
    await page.keyboard.press('Tab');
    const stop = await page.evaluate(() => {
      const at = document.activeElement;
      if (!at || at === document.body) return null;
      const style = getComputedStyle(at);
      return [at.id || at.textContent.trim().slice(0, 20) || at.tagName, style.outlineStyle !== 'none' && style.outlineWidth !== '0px'];
    });
    if (stop === null || (stops.length > 0 && stops[0][0] === stop[0])) break;
    stops.push(stop);
  }
  return stops;
}

// A stand-in for the UI that speaks its protocol.
const STAND_IN = `<script>addEventListener('message', (event) => {
  if (event.data === 'PING') event.source.postMessage('PONG', '*');
  else if (event.data.perfetto) window.got = event.data.perfetto;
});</script>`;

const TYPES = {'.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css', '.wasm': 'application/wasm', '.json': 'application/json'};

// The real UI, from a copy of it in a folder. It asks whether to trust a page that was opened from a file.
async function realPerfetto(page, folder) {
  const context = page.context();
  await context.route(/^https:/, (route) => {
    const {hostname, pathname} = new URL(route.request().url());
    const file = path.join(folder, pathname === '/' ? 'index.html' : pathname);
    if (hostname !== 'ui.perfetto.dev') return route.abort();
    if (!existsSync(file)) return route.fulfill({status: 404});
    return route.fulfill({path: file, contentType: TYPES[path.extname(file)] ?? 'application/octet-stream'});
  });
  const opened = context.waitForEvent('page');
  await page.click('#perfetto');
  const ui = await opened;
  await ui.getByRole('button', {name: 'Yes'}).click();
  await ui.waitForFunction(() => window.app?.trace?.traceInfo !== undefined && !window.app.isLoadingTrace);
  const seen = await ui.evaluate(async () => {
    const {traceInfo, engine} = window.app.trace;
    const result = await engine.query("select count(*) as n from slice where name like 'step %'");
    return {title: traceInfo.traceTitle, errors: Number(traceInfo.importErrors), steps: Number(result.iter({}).get('n'))};
  });
  await ui.close();
  return seen;
}

async function perfetto(page, file) {
  const context = page.context();
  await context.route('https://ui.perfetto.dev/**', (route) => route.fulfill({contentType: 'text/html', body: STAND_IN}));
  const seen = {};
  const opened = context.waitForEvent('page');
  await page.click('#perfetto');
  if (file) {
    seen.command = await page.textContent('#perfetto-command');
    await page.setInputFiles('#perfetto-file', file);
    await page.click('#perfetto-go:enabled');
  }
  const ui = await opened;
  await ui.waitForFunction(() => window.got !== undefined);
  Object.assign(seen, await ui.evaluate(() => ({
    bytes: [...new Uint8Array(window.got.buffer)].slice(0, 8),
    size: window.got.buffer.byteLength,
    title: window.got.title,
    fileName: window.got.fileName,
  })));
  await ui.close();
  return seen;
}

function watch(page, address) {
  const seen = {errors: [], requests: []};
  page.on('pageerror', (error) => seen.errors.push(error.stack || String(error)));
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) seen.errors.push(message.text());
  });
  page.on('dialog', (dialog) => {
    seen.errors.push(`a dialog: ${dialog.message()}`);
    dialog.dismiss();
  });
  page.on('request', (request) => {
    if (request.url() !== address) seen.requests.push(request.url());
  });
  return seen;
}

async function visit(browser, options) {
  const address = pathToFileURL(options.page).href;
  const page = await browser.newPage({viewport: VIEWPORT, colorScheme: 'light', serviceWorkers: 'block'});
  page.setDefaultTimeout(30000);
  const seen = watch(page, address);
  await page.addInitScript(() => {
    window.shifts = 0;
    new PerformanceObserver((list) => {
      for (const entry of list.getEntries()) window.shifts += entry.value;
    }).observe({type: 'layout-shift', buffered: true});
  });
  await page.goto(address);
  await page.waitForFunction(() => performance.getEntriesByName('drawn').length > 0 && performance.getEntriesByType('paint').length > 0);
  const report = await page.evaluate(() => ({
    // With all that is in it, not an empty page.
    firstPaintMs: Math.max(
      ...[...performance.getEntriesByType('paint'), ...performance.getEntriesByName('drawn')].map((entry) => entry.startTime),
    ),
    elements: document.querySelectorAll('*').length,
    title: document.title,
    heading: document.querySelector('h1').textContent,
    body: document.body.innerText,
    wide: document.documentElement.scrollWidth > innerWidth,
  }));
  report.rows = await rowsOf(page);
  report.shifts = await page.evaluate(() => window.shifts);
  if (options.screenshot) {
    await page.screenshot({path: options.screenshot, fullPage: true});
    await page.emulateMedia({colorScheme: 'dark'});
    await page.screenshot({path: options.screenshot.replace(/\.png$/, '-dark.png'), fullPage: true});
    await page.emulateMedia({colorScheme: 'light'});
  }
  if (options.use) {
    report.tabs = await tabbing(page);
    report.sorting = await sorting(page);
    report.folding = await folding(page);
    report.filtering = await filtering(page);
    report.zooming = await zooming(page);
    report.exploring = await exploring(page);
    report.themes = await themes(page);
  }
  if (options.scroll) {
    await page.click('#expand');
    await page.focus('#table tbody tr[data-place="0"]');
    await page.keyboard.press('End');
    report.last = (await rowsOf(page)).at(-1);
    report.inDocument = (await rowsOf(page)).length;
    await page.evaluate(() => dispatchEvent(new Event('beforeprint')));
    await page.setViewportSize({width: 1000, height: 700});
    report.printed = (await rowsOf(page)).length;
    await page.evaluate(() => dispatchEvent(new Event('afterprint')));
    report.afterPrinting = (await rowsOf(page)).length;
  }
  report.requestsBefore = [...seen.requests];
  if (options.ui) report.ui = await realPerfetto(page, options.ui);
  if (options.perfetto !== undefined) report.perfetto = await perfetto(page, options.perfetto);
  return {...report, ...seen};
}

const {values: options} = parseArgs({
  options: {
    page: {type: 'string'},
    screenshot: {type: 'string'},
    use: {type: 'boolean', default: false},
    scroll: {type: 'boolean', default: false},
    perfetto: {type: 'string'},
    ui: {type: 'string'},
  },
});
if (!options.page) {
  console.error('usage: node open_report.mjs --page FILE [--screenshot FILE] [--use] [--scroll] [--perfetto FILE] [--ui FOLDER]');
  process.exit(2);
}
setTimeout(() => {
  console.error('open_report: not done after 120 s');
  process.exit(1);
}, 120000).unref();

const browser = await startChromium();
try {
  console.log(JSON.stringify(await visit(browser, options), null, 2));
} finally {
  await browser.close();
}
