// Headless Chromium that reaches nothing but this machine.

import {accessSync, constants} from 'node:fs';
import path from 'node:path';

import {chromium} from 'playwright-core';

const CHROMIUM_FLAGS = [
  '--headless',
  '--no-sandbox', // Chromium refuses to sandbox root
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1', // nothing but this machine
];

function findChromium() {
  const folders = (process.env.PATH ?? '').split(path.delimiter);
  const names = ['chromium', 'chromium-browser', 'google-chrome'];
  for (const file of names.flatMap((name) => folders.map((folder) => path.join(folder, name)))) {
    try {
      accessSync(file, constants.X_OK);
      return file;
    } catch {
      // not this one
    }
  }
  throw new Error(`none of ${names.join(', ')} on PATH`);
}

export function startChromium() {
  return chromium.launch({executablePath: findChromium(), args: CHROMIUM_FLAGS});
}
