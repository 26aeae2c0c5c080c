// One end of a numbered UDP stream; runs as a child process inside a network namespace (see traffic.ts).
// Commands come as lines on standard input: `greet`, `arm`, `start`, `stop`, `count`, `report`. Answers go out as JSON lines.
import { createSocket } from 'node:dgram';
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { NumberLedger } from './number-ledger.ts';

const [local = '', peer = '', portText = '0', rateText = '0'] = process.argv.slice(2);
const port = Number(portText);
const packetsPerMs = Number(rateText) / 1_000;

/** Most packets sent in one go: after a stall the stream goes on at its rate instead of flooding queues. */
const BURST = 100;
/** Hello packets carry this instead of a number. */
const HELLO = 0xffffffff;

const socket = createSocket(local.includes(':') ? 'udp6' : 'udp4');
const ledger = new NumberLedger();
const packet = Buffer.alloc(32);
let next = 0;
let isPeerHeard = false;
let dropsBefore = 0;
let timer: NodeJS.Timeout | undefined;
let sendErrors = 0;

socket.on('message', (bytes) => {
  const number = bytes.readUInt32BE(0);
  if (number !== HELLO) ledger.note(number, performance.now());
  else if (!isPeerHeard) {
    isPeerHeard = true;
    answer({ event: 'ready' });
  }
});

function sendNumber(number: number): void {
  const bytes = Buffer.from(packet);
  bytes.writeUInt32BE(number, 0);
  socket.send(bytes, port, peer, (error) => {
    if (error !== null && number !== HELLO) sendErrors += 1;
  });
}

/** Greets until the stream starts, so that no number is spent on a path that is not up yet. */
function greet(): void {
  timer = setInterval(() => sendNumber(HELLO), 20);
}

function startSending(): void {
  if (packetsPerMs === 0) return;
  let last = performance.now();
  let owed = 0;
  timer = setInterval(() => {
    const now = performance.now();
    owed = Math.min(owed + (now - last) * packetsPerMs, BURST);
    last = now;
    for (; owed >= 1; owed--) sendNumber(next++);
  }, 1);
}

/** Packets that the kernel threw away because this process was too slow to read: not the network's doing. */
function socketDrops(): number {
  const table = readFileSync(local.includes(':') ? '/proc/net/udp6' : '/proc/net/udp', 'utf8');
  const wanted = `:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  const row = table.split('\n').find((line) => line.trim().split(/\s+/)[1]?.endsWith(wanted));
  return Number(row?.trim().split(/\s+/)[12] ?? 0);
}

function answer(message: object): void {
  process.stdout.write(`${JSON.stringify(message)}\n`);
}

const commands: Record<string, () => void> = {
  greet,
  arm: () => {
    clearInterval(timer);
    dropsBefore = socketDrops();
    answer({ event: 'armed' });
  },
  start: startSending,
  stop: () => {
    clearInterval(timer);
    answer({ event: 'stopped', sent: next, sendErrors });
  },
  count: () => answer({ event: 'count', received: ledger.received }),
  report: () =>
    answer({ event: 'report', ...ledger.report(), sent: next, sendErrors, socketDrops: socketDrops() - dropsBefore }),
};

socket.bind(port, local, () => {
  // As much as the machine allows; what still does not fit is counted by `socketDrops`.
  socket.setRecvBufferSize(4 << 20);
  answer({ event: 'bound' });
});
createInterface({ input: process.stdin })
  .on('line', (line) => commands[line]?.())
  // The parent is gone: so is the stream.
  .on('close', () => process.exit(0));
