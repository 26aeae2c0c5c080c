import type { NetnsView } from '../../../sim/support/netns.ts';
import { waitUntil } from '../../support/wait-until.ts';

/** Reads a counter of packets. */
type Counter = () => Promise<number>;

/** How long nothing may come for a flow to be over, ms: many times what lies between two packets. */
const QUIET_MS = 150;
/** Between two packets of `sendDatagrams`, ms. */
const EVERY_MS = 1;

/** Counts packets in the hook forward of a node; by default all of TCP and UDP. */
export async function watchForward(netns: NetnsView, match = 'meta l4proto { tcp, udp }'): Promise<Counter> {
  return await watch(netns, 'forward', match);
}

/** Counts datagrams that come in for a port of UDP; with `bytes` those with so much of a payload alone. */
export async function watchInput(netns: NetnsView, port: number, bytes?: number): Promise<Counter> {
  return await watch(netns, 'input', `udp dport ${port}${bytes === undefined ? '' : ` udp length ${bytes + 8}`}`);
}

/** Counts what comes in and matches. */
export async function watchArrivals(netns: NetnsView, match: string): Promise<Counter> {
  return await watch(netns, 'input', match);
}

/** Counts what comes within so many ms. */
export async function countedSince(counter: Counter, ms: number): Promise<number> {
  const before = await counter();
  await new Promise((resolve) => setTimeout(resolve, ms));
  return (await counter()) - before;
}

/** Waits until nothing comes any more. @returns when the last packet came, as performance.now() */
export async function silence(counter: Counter): Promise<number> {
  let last = await counter();
  let sinceMs = performance.now();
  await waitUntil(
    async () => {
      const now = await counter();
      if (now !== last) sinceMs = performance.now();
      last = now;
      return performance.now() - sinceMs > QUIET_MS;
    },
    { what: 'silence', everyMs: 10 },
  );
  return sinceMs;
}

/** Sends UDP from one port to the same one, with a source address that the namespace has. */
export async function sendDatagrams(
  netns: NetnsView,
  flow: {
    readonly from: string;
    readonly to: string;
    readonly port: number;
    readonly bytes: number;
    readonly count: number;
    /** Default that of the namespace. */
    readonly ttl?: number;
  },
): Promise<void> {
  await netns.run([process.execPath, '-e', SENDER, JSON.stringify({ ...flow, everyMs: EVERY_MS })]);
}

const SENDER = `
  const { from, to, port, bytes, count, ttl, everyMs } = JSON.parse(process.argv[1]);
  const socket = require('node:dgram').createSocket({ type: 'udp4', reuseAddr: true });
  socket.bind(port, from, () => {
    let sent = 0;
    if (ttl !== undefined) socket.setTTL(ttl);
    const timer = setInterval(() => {
      socket.send(Buffer.alloc(bytes), port, to);
      if (++sent === count) { clearInterval(timer); setTimeout(() => process.exit(0), 50); }
    }, everyMs);
  });
`;

async function watch(netns: NetnsView, hook: 'forward' | 'input', match: string): Promise<Counter> {
  await netns.nft(`table inet watch
    delete table inet watch
    table inet watch {
      counter seen { }
      chain seen {
        type filter hook ${hook} priority filter; policy accept;
        ${match} counter name seen
      }
    }`);
  return async () => {
    const objects = (await netns.nftJson('counters', 'table', 'inet', 'watch')) ?? [];
    const counters = objects.flatMap((object) => (object['counter'] as { packets: number } | undefined) ?? []);
    return counters[0]?.packets ?? 0;
  };
}
