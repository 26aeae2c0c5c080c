import type { Request } from '../../../netlink/request.ts';
import { openRtnetlink } from '../../../netlink/rtnetlink.ts';

// A program that deletes one object so many times a second, as fast as its schedule says: `undo-loop.ts REQUEST RATE`. REQUEST is
// a request of `netlink/` in JSON. SIGTERM ends it; then it prints how often there was something to delete.

const TICK_MS = 1;

const [text = '', rateText = ''] = process.argv.slice(2);
const request = JSON.parse(text) as Request;
const perMs = Number(rateText) / 1_000;
const rtnetlink = openRtnetlink();
const startMs = performance.now();
let tried = 0;
let undone = 0;

setInterval(() => {
  // Not more than a tick's worth is made up for: a delayed timer is no burst.
  tried = Math.max(tried, Math.floor((performance.now() - startMs - 10 * TICK_MS) * perMs));
  while (tried < (performance.now() - startMs) * perMs) {
    tried += 1;
    const [outcome] = rtnetlink.execute([request]);
    if (outcome?.kind === 'ok') undone += 1;
  }
}, TICK_MS);

process.once('SIGTERM', () => {
  process.stdout.write(`${JSON.stringify({ undone })}\n`, () => process.exit(0));
});
process.stdout.write('ready\n');
