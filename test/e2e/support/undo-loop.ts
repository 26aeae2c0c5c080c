import { readFileSync, writeFileSync } from 'node:fs';
import type { Request } from '../../../netlink/request.ts';
import { openRtnetlink } from '../../../netlink/rtnetlink.ts';

// A program that undoes one thing so many times a second: `undo-loop.ts WHAT RATE`. WHAT is JSON, a request of `netlink/` or a
// setting: `{"file": "/proc/sys/…", "value": "0"}`. SIGTERM ends it; then it prints how often there was something to undo.

const TICK_MS = 1;

const [text = '', rateText = ''] = process.argv.slice(2);
const what = JSON.parse(text) as Request | { readonly file: string; readonly value: string };
const perMs = Number(rateText) / 1_000;
const rtnetlink = openRtnetlink();
const startMs = performance.now();
let tried = 0;
let undone = 0;

/** Reports whether there was something to undo; of a link, whether it was set. */
function undo(): boolean {
  if (!('file' in what)) return rtnetlink.execute([what])[0]?.kind === 'ok';
  if (readFileSync(what.file, 'utf8').trim() === what.value) return false;
  writeFileSync(what.file, what.value);
  return true;
}

setInterval(() => {
  // Not more than a tick's worth is made up for: a delayed timer is no burst.
  tried = Math.max(tried, Math.floor((performance.now() - startMs - 10 * TICK_MS) * perMs));
  while (tried < (performance.now() - startMs) * perMs) {
    tried += 1;
    if (undo()) undone += 1;
  }
}, TICK_MS);

process.once('SIGTERM', () => {
  process.stdout.write(`${JSON.stringify({ undone })}\n`, () => process.exit(0));
});
process.stdout.write('ready\n');
