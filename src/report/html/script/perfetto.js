// ---- Perfetto UI. Nothing is asked of it before the button is pressed; the trace goes from window to window ----

const PERFETTO = 'https://ui.perfetto.dev';

function embeddedTrace() {
  const text = byId('trace').textContent.trim();
  if (text === '') return null;
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes.buffer;
}

// The UI answers PONG to a PING as soon as it listens, and then takes a trace.
function openInPerfetto(buffer, name, tell) {
  const ui = window.open(PERFETTO);
  if (!ui) {
    tell('The browser did not open a window: allow pop-ups for this page and try again.');
    return;
  }
  tell('Waiting for Perfetto UI…');
  const ping = setInterval(() => ui.postMessage('PING', '*'), 100);
  const stop = () => {
    clearInterval(ping);
    clearTimeout(late);
    removeEventListener('message', answered);
  };
  const late = setTimeout(() => {
    stop();
    tell('Perfetto UI did not answer within a minute. Without a network, `layertrace view --offline` opens the trace.');
  }, 60000);
  const answered = (event) => {
    if (event.source !== ui || event.origin !== PERFETTO || event.data !== 'PONG') return;
    stop();
    ui.postMessage({perfetto: {buffer, title: data.title, fileName: name}}, PERFETTO);
    tell('Handed over to Perfetto UI.');
  };
  addEventListener('message', answered);
}

function startPerfetto() {
  const name = data.trace_file || 'run.pftrace';
  const quoted = /^[\w./-]+$/.test(name) ? name : `'${name.replaceAll("'", "'\\''")}'`;
  byId('perfetto-command').textContent = `layertrace view ${quoted}`;
  const dialog = byId('perfetto-dialog');
  const tell = (sentence) => {
    byId('perfetto-state').textContent = sentence;
  };
  let chosen = null;
  byId('perfetto').addEventListener('click', () => {
    const buffer = embeddedTrace();
    if (!buffer) {
      dialog.showModal();
      return;
    }
    const button = byId('perfetto');
    openInPerfetto(buffer, name.split('/').pop(), (sentence) => {
      button.title = sentence;
      byId('icicle-live').textContent = sentence;
    });
  });
  byId('perfetto-file').addEventListener('change', async (event) => {
    const [file] = event.target.files;
    if (!file) return;
    chosen = {name: file.name, buffer: await file.arrayBuffer()};
    tell(`${file.name}: ${formatBytes(file.size)}.`);
    byId('perfetto-go').disabled = false;
  });
  byId('perfetto-go').addEventListener('click', () => openInPerfetto(chosen.buffer.slice(0), chosen.name, tell));
  byId('perfetto-close').addEventListener('click', () => dialog.close());
}
